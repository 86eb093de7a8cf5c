/**
 * From what was sent to what an operation takes: a zod schema applied to a body or a query, with
 * the field at fault named, and with the fields that were not understood.
 */

import * as z from "zod";
import { containsCardNumber } from "../core/card_number.ts";
import { ApiError, invalidParameter } from "../core/errors.ts";
import { type ReadBody, refuseCardNumbers } from "./request_body.ts";

/** Names reported in `Unknown-Parameters`, at most. */
const MAX_UNKNOWN = 20;

/** An input that was understood, and the names of the fields that were ignored. */
export interface Parsed<T> {
  input: T;
  unknown: string[];
}

interface UnknownField {
  path: string;
  value: unknown;
}

/** Applies a schema to a body. Throws `invalid_parameter` naming the first field at fault. */
export function parseBody<T>(schema: z.ZodType<T>, body: ReadBody): Parsed<T> {
  const input = check(schema, body.value);
  for (const path of body.literals.keys()) {
    // 1.0, 1e3 and -0 are numbers to JSON but not amounts to us: judged on the text.
    if (typeof at(input, path) === "number") {
      throw invalidParameter(path, `Invalid "${path}": write it as a plain integer`);
    }
  }
  const unknown = unknownFields(body.value, input);
  // The operation does not take these fields, so a place such as card.number is no exception here.
  // Other texts were checked when the body was read.
  for (const { path, value } of unknown) refuseCardNumbers(value, path, "in_places");
  return { input, unknown: unknown.map(({ path }) => path) };
}

/** Applies a schema to a query. Throws `invalid_parameter` naming the first parameter at fault. */
export function parseQuery<T>(schema: z.ZodType<T>, query: URLSearchParams): Parsed<T> {
  const values: Record<string, string> = {};
  for (const [name, value] of query) {
    if (containsCardNumber(name)) {
      throw new ApiError("invalid_parameter", "A parameter's name looks like a card number");
    }
    const shown = printable(name);
    if (containsCardNumber(value)) {
      throw invalidParameter(shown, `Invalid "${shown}": it looks like a card number`);
    }
    if (Object.hasOwn(values, name)) throw invalidParameter(shown, `"${shown}" is given twice`);
    if (value.includes("\0")) throw invalidParameter(shown, `"${shown}" contains U+0000`);
    Object.defineProperty(values, name, { value, enumerable: true });
  }
  const input = check(schema, values);
  return { input, unknown: unknownFields(values, input).map(({ path }) => path) };
}

/** The value of the response header that names ignored fields, or null. */
export function unknownParametersHeader(unknown: readonly string[]): string | null {
  return unknown.length === 0 ? null : unknown.slice(0, MAX_UNKNOWN).map(printable).join(", ");
}

function check<T>(schema: z.ZodType<T>, value: Record<string, unknown>): T {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const issue = result.error.issues[0]!;
  const param = paramOf(value, issue.path);
  throw invalidParameter(param, `Invalid "${param}": ${reasonOf(issue, value)}`);
}

/** An error of a rule, naming its field as it was sent: `iban`, not `iban.iban`, of plain text. */
export function asSent(error: unknown, sent: ReadBody | null): unknown {
  if (!(error instanceof ApiError) || sent === null || !error.details.param) return error;
  const param = paramOf(sent.value, error.details.param.split("."));
  if (param === "" || param === error.details.param) return error;
  return new ApiError(error.code, error.message, { ...error.details, param }, error.headers);
}

/** The path of an issue, as far as the sent value has objects: `iban`, not `iban.iban`, of text. */
function paramOf(value: unknown, path: readonly PropertyKey[]): string {
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

function reasonOf(issue: z.core.$ZodIssue, value: unknown): string {
  const sent = issue.path.reduce<unknown>(
    (inner, step) => (inner as Record<PropertyKey, unknown> | undefined)?.[step],
    value,
  );
  if (issue.code === "invalid_type" && sent === undefined) return "is required";
  return issue.message.charAt(0).toLowerCase() + issue.message.slice(1);
}

function unknownFields(sent: unknown, taken: unknown, path = ""): UnknownField[] {
  if (!isRecord(sent) || !isRecord(taken)) return [];
  return Object.keys(sent).flatMap((name) => {
    const inner = path ? `${path}.${name}` : name;
    return Object.hasOwn(taken, name)
      ? unknownFields(sent[name], taken[name], inner)
      : [{ path: inner, value: sent[name] }];
  });
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function at(value: unknown, path: string): unknown {
  return path.split(".").reduce<unknown>(
    (inner, name) => isRecord(inner) && Object.hasOwn(inner, name) ? inner[name] : undefined,
    value,
  );
}

/** A name fit for a header and a message: visible ASCII, bounded. */
function printable(name: string): string {
  return name.slice(0, 64).replace(/[^\x21-\x2b\x2d-\x7e]/g, "?");
}
