/**
 * Canonical JSON (RFC 8785), and the fingerprint that compares two requests with the same
 * idempotency key (contract §5). The order of members and the notation of numbers and strings do
 * not change a fingerprint. A different value, method or path does.
 */

import { createHash } from "node:crypto";

/** Any value that JSON can express. */
export type JsonValue = null | boolean | number | string | JsonValue[] | JsonObject;

/** An object from JSON. Its members are own properties. */
export type JsonObject = { [name: string]: JsonValue };

/** Writes the canonical text of a value without lone surrogates, as of `parseStrictJson`. */
export function canonicalJson(value: JsonValue): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join()}]`;
  let members = "";
  // `sort` compares UTF-16 code units, which is the order of RFC 8785.
  for (const name of Object.keys(value).sort()) {
    members += `${members && ","}${JSON.stringify(name)}:${canonicalJson(value[name]!)}`;
  }
  return `{${members}}`;
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
