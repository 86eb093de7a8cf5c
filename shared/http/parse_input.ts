/**
 * Applies the schemas of an operation to the body and the query of a request. An error names the
 * first name that the operation does not know, or else the first field at fault.
 */

import * as z from "zod";
import { containsCardNumber } from "../core/card_number.ts";
import { ApiError, invalidParameter } from "../core/errors.ts";
import { checkFields, paramOf } from "./check_value.ts";
import { literalMessage } from "./issue_message.ts";
import { type ReadBody, refuseCardNumbers } from "./request_body.ts";
import { refuseUnknownNames, unknownName } from "./unknown_names.ts";

/** Applies a schema to a body. Throws `invalid_parameter` with the first field at fault. */
export function parseBody<T>(schema: z.ZodType<T>, body: ReadBody): T {
  const { unknown } = body;
  if (unknown) throw unknownName(unknown.schema, unknown.name, unknown.path);
  const input = checkFields(schema, body.value, body.literals);
  for (const [path, literal] of body.literals) {
    // JSON accepts 1.0, 1e3 and -0, but the service does not: the text of the number decides.
    const sent = at(input, path);
    if (typeof sent !== "number") continue;
    const { currency } = body.value;
    throw invalidParameter(path, literalMessage({ param: path, sent, literal, currency }));
  }
  refuseCardNumbers(body.suspects);
  return input;
}

/** The results of queries without parameters, which stay the same. */
const defaults = new WeakMap<z.ZodType, object>();

/** Applies a schema to a query. Throws `invalid_parameter` with the first parameter at fault. */
export function parseQuery<T>(schema: z.ZodType<T>, query: URLSearchParams): T {
  if (query.size > 0) return parseParameters(schema, query);
  const known = defaults.get(schema);
  if (known !== undefined) return known as T;
  const made = Object.freeze(checkFields(schema, {})) as object;
  defaults.set(schema, made);
  return made as T;
}

function parseParameters<T>(schema: z.ZodType<T>, query: URLSearchParams): T {
  // The libraries of Supabase add this name to the query of a call.
  const { forceFunctionRegion: _, ...values } = Object.fromEntries(query);
  refuseUnknownNames(schema, values);
  for (const [name, value] of Object.entries(values)) {
    const refuse = (words: string) => invalidParameter(name, `"${name}" ${words}`);
    if (query.getAll(name).length > 1) throw refuse("is in the URL twice: send it once");
    if (value.includes("\0")) throw refuse("contains the character U+0000: remove it");
    if (containsCardNumber(value)) throw refuse("looks like a card number: remove it from the URL");
  }
  return checkFields(schema, values);
}

/** Renames the field of an error to the sent one: `iban` if the IBAN was sent as text. */
export function asSent(error: unknown, sent: ReadBody | null): unknown {
  if (!(error instanceof ApiError) || sent === null || !error.details.param) return error;
  const param = paramOf(sent.value, error.details.param.split("."));
  if (param === "" || param === error.details.param) return error;
  return new ApiError(error.code, error.message, { ...error.details, param }, error.headers);
}

function at(value: unknown, path: string): unknown {
  return path.split(".").reduce<unknown>(
    (inner, name) => (inner as Record<string, unknown> | undefined)?.[name],
    value,
  );
}
