/**
 * Refuses unknown fields of a body that look like a misspelt or foreign name of a known one: to
 * ignore `crad` or `capture_method` would change what happens to money (contract §2). Other unknown
 * fields are the merchant's own.
 */

import type * as z from "zod";
import { ApiError, invalidParameter } from "../core/errors.ts";
import { namesOf } from "../schema/requirement.ts";
import { FOREIGN_NAMES, type ForeignNames, OTHER_WORDS } from "./foreign_names.ts";

/** A field that a schema does not have. */
export interface UnknownField {
  path: string;
  name: string;
  value: unknown;
  /** The schema of its object. */
  parent: z.ZodType;
}

/** Shortest name that one wrong letter leaves recognizable: `cart` and `payee` are other words. */
const MIN_ONE_EDIT = 6;
/** Shortest name whose plural and swapped letters are recognized. */
const MIN_COMPARED = 4;

const FOREIGN: ReadonlyMap<string, readonly ForeignNames[]> = Map.groupBy(
  FOREIGN_NAMES.flatMap((entry) => entry.names.map((name) => ({ ...entry, name: bare(name) }))),
  ({ name }) => name,
);

/** Throws `invalid_parameter` for the first field that looks like another name of a known one. */
export function refuseMisnamed(fields: readonly UnknownField[], show: (name: string) => string) {
  for (const field of fields) {
    const error = misnamed(field, show(field.path));
    if (error) throw error;
  }
}

function misnamed({ name, path, parent }: UnknownField, shown: string): ApiError | null {
  const known = namesOf(parent);
  const sent = bare(name);
  const foreign = FOREIGN.get(sent)?.find(({ ours, unless }) =>
    known.includes(ours) && !(unless !== undefined && known.includes(unless))
  );
  const near = foreign ? undefined : known.find((ours) => isNear(sent, bare(ours)));
  if (!foreign && near === undefined) return null;
  const before = path.slice(0, path.length - name.length);
  const { ours = near, send = `"${before}${ours}"` } = foreign ?? {};
  const remedy = send === null
    ? "this service has nothing like it: remove it"
    : `send ${send}, or remove it`;
  return invalidParameter(shown, `"${shown}" is not a parameter: ${remedy}`);
}

/**
 * Reports whether a name can be a misspelling of one of ours: the same without case and separators,
 * its plural or singular, two swapped letters, or in a longer name one wrong, missing or added
 * letter. Takes time in proportion to the shorter name, so a body takes time in proportion to its
 * length.
 */
export function isNear(sent: string, ours: string): boolean {
  if (sent === ours) return true;
  if (OTHER_WORDS.has(sent) || Math.min(sent.length, ours.length) < MIN_COMPARED) return false;
  if (Math.abs(sent.length - ours.length) > 1) return false;
  if (sent === `${ours}s` || ours === `${sent}s`) return true;
  const [left, right] = differingParts(sent, ours);
  const is_swapped = left.length === 2 && right.length === 2 && left[0] === right[1] &&
    left[1] === right[0];
  return is_swapped || ours.length >= MIN_ONE_EDIT && left.length <= 1 && right.length <= 1;
}

/** Returns the parts of two texts between their common beginning and their common end. */
function differingParts(a: string, b: string): [string, string] {
  const shorter = Math.min(a.length, b.length);
  let first = 0;
  while (first < shorter && a[first] === b[first]) first++;
  let last = 0;
  while (last < shorter - first && a.at(-1 - last) === b.at(-1 - last)) last++;
  return [a.slice(first, a.length - last), b.slice(first, b.length - last)];
}

/** Returns a name without case and separators: `returnUrl` and `Return-URL` are `return_url`. */
function bare(name: string): string {
  return name.toLowerCase().replaceAll(/[_-]/g, "");
}
