/**
 * Canonical JSON (RFC 8785), and the fingerprint that compares two requests with the same
 * idempotency key (contract §5). The order of members and the notation of numbers and strings do
 * not change a fingerprint. A different value, method or path does.
 */

import { createHash } from "node:crypto";
import canonicalize from "canonicalize";

/** Any value that JSON can express. */
export type JsonValue = null | boolean | number | string | JsonValue[] | JsonObject;

/** An object from JSON. Its members are own properties. */
export type JsonObject = { [name: string]: JsonValue };

/**
 * Writes the canonical text of a value.
 *
 * @param value a result of `parseStrictJson`
 * @throws {Error} for a lone surrogate or a number that is not finite; `parseStrictJson` returns
 * neither
 */
export function canonicalJson(value: JsonValue): string {
  // `canonicalize` returns undefined only for values outside JSON, which the type excludes.
  return canonicalize(value)!;
}

/**
 * Computes the SHA-256 of method, path and canonical body, in lower-case hex.
 *
 * @param method in upper case, such as `POST`
 * @param path the canonical path without the query; every alias of a route passes the same path
 * @param body the parsed body; `{}` when the request has none
 */
export function fingerprint(method: string, path: string, body: JsonValue): string {
  return createHash("sha256").update(`${method} ${path}\n${canonicalJson(body)}`).digest("hex");
}
