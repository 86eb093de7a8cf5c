/**
 * The caller's key, judged by its text alone: form and checksum. Whether it opens anything is the
 * database's answer, in the round trip that does the work.
 */

import type { MiddlewareHandler } from "hono";
import { parseApiKey } from "../core/api_key.ts";
import { ApiError } from "../core/errors.ts";
import { unauthorized } from "../store/outcome.ts";
import type { Env } from "./request_state.ts";

/** Reads `Authorization: Bearer <API_KEY>`. A malformed key never reaches the database. */
export function apiKeyHeader(): MiddlewareHandler<Env> {
  return async function readApiKey(c, next) {
    const header = c.req.header("Authorization") ?? "";
    const key = /^bearer /i.test(header) ? parseApiKey(header.slice(7).trim()) : null;
    if (!key) throw unauthorized();
    const livemode = key.mode === "live";
    if (livemode && c.req.header("Origin") !== undefined) {
      throw new ApiError(
        "origin_not_allowed",
        "Live keys are not accepted from browsers: keep them on your server",
      );
    }
    c.get("state").key = { hash: key.hash, livemode };
    await next();
  };
}
