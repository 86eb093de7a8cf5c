/**
 * Requests of browsers. A request with an `Origin` that is not allowed is refused before anything
 * else runs. The others get CORS headers (contract §6).
 */

import type { MiddlewareHandler } from "hono";
import { cors } from "hono/cors";
import { ApiError } from "../core/errors.ts";
import { FAULT_HEADER, REPLAYED_HEADER } from "../core/vocabulary.ts";
import type { Env } from "./request_state.ts";

/** Seconds that a browser may cache a preflight. */
const PREFLIGHT_MAX_AGE_S = 600;

const REQUEST_HEADERS = [
  "Authorization",
  "Content-Type",
  "Idempotency-Key",
  "Prefer",
  FAULT_HEADER,
  "traceparent",
];
/** Headers that `functions.invoke` of supabase-js adds to every call. The API ignores them. */
const SUPABASE_HEADERS = ["apikey", "X-Client-Info", "X-Region"];

/**
 * Refuses requests from origins that are not allowed.
 * @param options.allowed exact origins, or `http://localhost:*` for any port
 * @param options.remedy how the operator allows an origin
 * @param options.headers further headers that a request may have
 */
export function crossOrigin(
  options: {
    allowed: readonly string[];
    remedy?: string;
    headers?: readonly string[];
  },
): MiddlewareHandler<Env> {
  const { allowed, remedy = "add it to CONSOLE_ORIGINS", headers: further = [] } = options;
  const headers = cors({
    origin: (origin) => origin,
    allowMethods: ["GET", "POST", "PUT", "DELETE"],
    allowHeaders: [...REQUEST_HEADERS, ...SUPABASE_HEADERS, ...further],
    exposeHeaders: [
      "Request-Id",
      "Location",
      REPLAYED_HEADER,
      "Retry-After",
      FAULT_HEADER,
      "RateLimit",
      "RateLimit-Policy",
    ],
    maxAge: PREFLIGHT_MAX_AGE_S,
  });
  return function guardOrigin(c, next) {
    const origin = c.req.header("Origin");
    if (origin === undefined) return next();
    if (!allowed.some((pattern) => matches(pattern, origin))) {
      const message = `Browsers may not call from this origin: ask the operator to ${remedy}`;
      return Promise.reject(new ApiError("origin_not_allowed", message));
    }
    return headers(c, next);
  };
}

/** Reports whether a web page sent the request. A browser sends no Origin to the page's host. */
export function isFromPage(headers: Headers): boolean {
  // `has` would make the runtime copy all headers of the request.
  return headers.get("Origin") !== null || headers.get("Sec-Fetch-Site") !== null;
}

function matches(pattern: string, origin: string): boolean {
  if (!pattern.endsWith(":*")) return pattern === origin;
  const host = pattern.slice(0, -2);
  return origin === host || (origin.startsWith(`${host}:`) &&
    /^\d{1,5}$/.test(origin.slice(host.length + 1)));
}
