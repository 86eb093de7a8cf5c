/**
 * Applies the schemas of an operation to the body and the query of a request. An error names the
 * first field at fault. A response header names the fields that the operation does not know.
 */

import * as z from "zod";
import { containsCardNumber } from "../core/card_number.ts";
import { ApiError, invalidParameter } from "../core/errors.ts";
import { memberOf } from "../schema/requirement.ts";
import { checkValue, isRecord, paramOf, printable, unknownFields } from "./check_value.ts";
import { literalMessage } from "./issue_message.ts";
import { refuseMisnamed } from "./misnamed_fields.ts";
import { type ReadBody, refuseCardNumbers } from "./request_body.ts";

/** RFC 7240: the client would rather have an error than an ignored parameter. */
const STRICT = /(^|[,;])\s*handling\s*=\s*"?strict"?\s*($|[,;])/i;
/** Most names in `Unknown-Parameters`. */
const MAX_UNKNOWN = 20;

/** Applies a schema to a body. Throws `invalid_parameter` with the first field at fault. */
export function parseBody<T>(schema: z.ZodType<T>, body: ReadBody): T {
  const input = checkValue(schema, body.value, body.literals);
  for (const [path, literal] of body.literals) {
    // JSON accepts 1.0, 1e3 and -0, but the service does not: the text of the number decides.
    const sent = at(input, path);
    if (typeof sent !== "number") continue;
    const { currency } = body.value;
    throw invalidParameter(path, literalMessage({ param: path, sent, literal, currency }));
  }
  // In an unknown field a card number is refused, even if its name is an exception elsewhere, such
  // as `card.number`. `readBody` has checked all other texts.
  for (const { path, value } of unknownFields(schema, body.value)) {
    refuseCardNumbers(value, path, "in_places");
  }
  return input;
}

/** Applies a schema to a query. Throws `invalid_parameter` with the first parameter at fault. */
export function parseQuery<T>(schema: z.ZodType<T>, query: URLSearchParams): T {
  const values: Record<string, string> = {};
  for (const [name, value] of query) {
    if (containsCardNumber(name)) {
      throw new ApiError(
        "invalid_parameter",
        "The name of a parameter in the URL looks like a card number: remove it",
      );
    }
    const shown = printable(name);
    if (containsCardNumber(value)) {
      throw invalidParameter(shown, `"${shown}" looks like a card number: remove it from the URL`);
    }
    if (Object.hasOwn(values, name)) {
      throw invalidParameter(shown, `"${shown}" is in the URL twice: send it once`);
    }
    if (value.includes("\0")) {
      throw invalidParameter(shown, `"${shown}" contains the character U+0000: remove it`);
    }
    Object.defineProperty(values, name, { value, enumerable: true });
  }
  return checkValue(schema, values);
}

/**
 * Returns the value of the header `Unknown-Parameters`, which names the fields and parameters that
 * the operation does not know, or null. The request need not be valid: a 400 has the header too,
 * because a misspelled name is often its reason.
 */
export function unknownParameters(
  takes: { body: z.ZodType; query: z.ZodType },
  body: ReadBody | null,
  query: URLSearchParams,
): string | null {
  const names = [
    ...[...query.keys()].filter((name) => memberOf(takes.query, name) === undefined),
    ...(body ? unknownFields(takes.body, body.value).map(({ path }) => path) : []),
  ].filter((name) => !containsCardNumber(name));
  if (names.length === 0) return null;
  return [...new Set(names.map(printable))].slice(0, MAX_UNKNOWN).join(", ");
}

/**
 * Refuses unknown parameters if the client asks for it in the header `Prefer: handling=strict`.
 * Throws `invalid_parameter` with the first name.
 * @param unknown the value of `Unknown-Parameters`
 */
export function refuseIfStrict(unknown: string, headers: Headers): void {
  if (!STRICT.test(headers.get("Prefer") ?? "")) return;
  const [name = ""] = unknown.split(", ");
  throw invalidParameter(
    name,
    `"${name}" is not a parameter of this operation: correct its name, or remove it`,
  );
}

/**
 * Refuses a field that looks like another name of one that the operation knows. Throws
 * `invalid_parameter` with the name to send.
 */
export function refuseOtherNames(schema: z.ZodType, body: ReadBody): void {
  refuseMisnamed(unknownFields(schema, body.value), printable);
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
    (inner, name) => isRecord(inner) && Object.hasOwn(inner, name) ? inner[name] : undefined,
    value,
  );
}
