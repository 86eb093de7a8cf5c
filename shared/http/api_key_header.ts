/**
 * The caller's key, judged by its text alone: form and checksum. Whether it opens anything is the
 * database's answer, in the round trip that does the work.
 */

import type { Context, MiddlewareHandler } from "hono";
import { parseApiKey, PUBLISHED_TEST_KEY } from "../core/api_key.ts";
import { ApiError } from "../core/errors.ts";
import { rateLimited } from "../store/outcome.ts";
import { AddressLimit, type Verdict } from "./address_limit.ts";
import type { Env, PresentedKey, RequestState } from "./request_state.ts";

/**
 * Reads `Authorization: Bearer <API_KEY>`. A malformed key never reaches the database. Clients
 * that keep failing get 429 until their window ends, unless they send a key that is known to be
 * valid.
 * @param options.limited whether failed authentications are limited
 * @param options.local whether the published key of local stacks may open anything
 */
export function apiKeyHeader(
  options: { limited: boolean; local: boolean },
): MiddlewareHandler<Env> {
  const limit = options.limited ? new AddressLimit() : null;
  return async function readApiKey(c, next) {
    const state = c.get("state");
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
      // Errors of handlers are answers by now, so the database's verdict is known.
      settle?.(verdictOf(state));
    }
  };
}

function verdictOf({ key_id, code }: RequestState): Verdict {
  if (key_id !== null) return "admitted";
  return code === "unauthorized" ? "refused" : "unknown";
}

/** The key of a request, or the 401 that says what is wrong with its header. */
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
  if (text === PUBLISHED_TEST_KEY && !local) return keyOpensNothing();
  return { hash: key.hash, livemode: key.mode === "live", text };
}

/** The form of the header. */
const HEADER_FORM = "Authorization: Bearer <API_KEY>";

/** The one 401 of every key in good form: unknown, revoked and expired keys get the same. */
export function keyOpensNothing(): ApiError {
  return unauthorized(
    "This API key opens nothing here: it is unknown, revoked or expired. Use another key",
  );
}

function unauthorized(message: string): ApiError {
  return new ApiError("unauthorized", message, {}, { "WWW-Authenticate": "Bearer" });
}

/** Who connects: the nearest proxy's word, or the connection's. */
function addressOf(forwarded: string | undefined, info: unknown): string {
  const last = forwarded?.split(",").at(-1)?.trim();
  const { remoteAddr } = (info ?? {}) as { remoteAddr?: { hostname?: string } };
  return last || remoteAddr?.hostname || "unknown";
}
