/**
 * Applies a schema to a value. An error names the first field at fault. The package uses this module
 * for the tools of agents, so it also runs on the oldest supported Node.js.
 */

import type * as z from "zod";
import { invalidParameter } from "../core/errors.ts";
import { memberOf } from "../schema/requirement.ts";
import { issueMessage } from "./issue_message.ts";
import type { UnknownField } from "./misnamed_fields.ts";

/** Text of the numbers that are not written as plain integers, by path. */
type Literals = ReadonlyMap<string, string>;
type Members = Record<PropertyKey, unknown>;

const NO_LITERALS: Literals = new Map();

/** Applies a schema. Throws `invalid_parameter` with the first field at fault. */
export function checkValue<T>(
  schema: z.ZodType<T>,
  value: Record<string, unknown>,
  literals: Literals = NO_LITERALS,
): T {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const issue = result.error.issues[0]!;
  const param = paramOf(value, issue.path);
  const sent = issue.path.reduce<unknown>(
    // A request can send an IBAN or a wallet address as text in place of the object.
    (inner, step) => typeof inner === "string" ? inner : (inner as Members | undefined)?.[step],
    value,
  );
  const { currency } = value;
  const fault = { param, sent, literal: literals.get(param), currency };
  throw invalidParameter(param, issueMessage(schema, issue, fault));
}

/** Returns the path of an issue up to the last sent object: `iban` if the IBAN was sent as text. */
export function paramOf(value: unknown, path: readonly PropertyKey[]): string {
  let name = "";
  for (const step of path) {
    if (typeof value !== "object" || value === null) break;
    name = typeof step === "number"
      ? `${name}[${step}]`
      : name
      ? `${name}.${String(step)}`
      : String(step);
    value = (value as Record<PropertyKey, unknown>)[step];
  }
  return printable(name);
}

/** Returns the fields of a body that the schema does not have. */
export function unknownFields(schema: z.ZodType, sent: unknown): UnknownField[] {
  const found: UnknownField[] = [];
  addUnknownFields(found, schema, sent, "");
  return found;
}

function addUnknownFields(
  found: UnknownField[],
  schema: z.ZodType,
  sent: unknown,
  before: string,
): void {
  if (!isRecord(sent)) return;
  for (const name of Object.keys(sent)) {
    const member = memberOf(schema, name);
    const value = sent[name];
    if (member === undefined) found.push({ path: before + name, name, value, parent: schema });
    else if (isRecord(value)) addUnknownFields(found, member, value, `${before}${name}.`);
  }
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Makes a name safe for a header and a message: at most 64 visible ASCII characters. */
export function printable(name: string): string {
  return name.slice(0, 64).replace(/[^\x21-\x2b\x2d-\x7e]/g, "?");
}
