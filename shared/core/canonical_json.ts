/**
 * One text for each JSON value (RFC 8785), and the fingerprint by which two requests under one
 * idempotency key are told to be the same (contract §5). The order of members and the spelling of
 * numbers and strings make no difference; a differing value, method or path does.
 */

import { createHash } from "node:crypto";
import canonicalize from "canonicalize";
import type { JsonValue } from "./strict_json.ts";

/**
 * The canonical text of a value.
 *
 * @param value as read by `parseStrictJson`
 * @throws {Error} for a lone surrogate or a number that is not finite, which that never gives
 */
export function canonicalJson(value: JsonValue): string {
  // Undefined comes back only for what JSON cannot express, and the type excludes it.
  return canonicalize(value)!;
}

/**
 * SHA-256 in lower-case hex of method, path and canonical body.
 *
 * @param method upper case, as `POST`
 * @param path the canonical path, without query; an alias of a route must pass the same one
 * @param body the parsed body; `{}` when the request has none
 */
export function fingerprint(method: string, path: string, body: JsonValue): string {
  return createHash("sha256").update(`${method} ${path}\n${canonicalJson(body)}`).digest("hex");
}
