/**
 * Reads the caller's key and checks its form and checksum. The database decides whether the key is
 * valid, in the round trip that does the work.
 */

import type { Context, MiddlewareHandler } from "hono";
import { parseApiKey, PUBLISHED_TEST_KEY } from "../core/api_key.ts";
import { ApiError } from "../core/errors.ts";
import { span } from "../core/tracing.ts";
import { rateLimited } from "../store/outcome.ts";
import { AddressLimit, type Verdict } from "./address_limit.ts";
import type { Env, PresentedKey, RequestState } from "./request_state.ts";

/**
 * Reads `Authorization: Bearer <API_KEY>`. A malformed key never reaches the database. Clients
 * with too many failures get 429 until the window ends, unless they send a key that this isolate
 * knows to be valid.
 * @param options.limited true: failed authentications are limited
 * @param options.local true: the published key of local stacks is accepted
 */
export function apiKeyHeader(
  options: { limited: boolean; local: boolean },
): MiddlewareHandler<Env> {
  const limit = options.limited ? new AddressLimit() : null;
  return async function readApiKey(c, next) {
    const state = c.get("state");
    const { key, settle } = span("authenticate", () => {
      const key = readKey(c, options.local);
      const address = limit && addressOf(c.req.header("X-Forwarded-For"), c.env);
      const settle = limit?.admit(
        address!,
        key instanceof ApiError ? undefined : key.hash,
        state.at_ms,
      );
      if (settle === null) throw rateLimited();
      if (key instanceof ApiError) {
        settle?.("refused");
        throw key;
      }
      return { key, settle };
    });
    state.key = key;
    try {
      if (key.livemode && c.req.header("Origin") !== undefined) {
        throw new ApiError(
          "origin_not_allowed",
          "Live keys are not accepted from browsers: keep them on your server",
        );
      }
      await next();
    } finally {
      // Hono has turned errors of handlers into responses, so the database's decision is known.
      settle?.(verdictOf(state));
    }
  };
}

function verdictOf({ key_id, code }: RequestState): Verdict {
  if (key_id !== null) return "admitted";
  return code === "unauthorized" ? "refused" : "unknown";
}

/** Returns the key of a request, or a 401 that names the fault of the header. */
function readKey(c: Context<Env>, local: boolean): PresentedKey | ApiError {
  const header = c.req.header("Authorization")?.trim() ?? "";
  if (header === "") {
    return unauthorized(`The Authorization header is missing: send "${HEADER_FORM}"`);
  }
  const [scheme] = header.split(/\s/, 1);
  if (scheme!.toLowerCase() !== "bearer") {
    return unauthorized(
      `The Authorization header must begin with the word Bearer: send "${HEADER_FORM}"`,
    );
  }
  const text = header.slice(scheme!.length).trim();
  const key = parseApiKey(text);
  if (key === null) {
    return unauthorized(
      'The text after "Bearer" is not an API key of this service: copy the whole key, which ' +
        'begins like "sk_test_" or "sk_live_", without quotes',
    );
  }
  if (text === PUBLISHED_TEST_KEY && !local) return invalidKey();
  return { hash: key.hash, livemode: key.mode === "live", text };
}

/** The form of the header. */
const HEADER_FORM = "Authorization: Bearer <API_KEY>";

/**
 * Makes the 401 for unknown, revoked and expired keys, which get the same response (contract §6).
 */
export function invalidKey(): ApiError {
  return unauthorized(
    "This API key is not valid here: it is unknown, revoked or expired. Use another key",
  );
}

function unauthorized(message: string): ApiError {
  return new ApiError("unauthorized", message, {}, { "WWW-Authenticate": "Bearer" });
}

/** Returns the address of the client, from the nearest proxy or else from the connection. */
export function addressOf(forwarded: string | undefined, info: unknown): string {
  const last = forwarded?.split(",").at(-1)?.trim();
  const { remoteAddr } = (info ?? {}) as { remoteAddr?: { hostname?: string } };
  return last || remoteAddr?.hostname || "unknown";
}
