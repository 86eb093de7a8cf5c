/**
 * The caller's key, judged by its text alone: form and checksum. Whether it opens anything is the
 * database's answer, in the round trip that does the work.
 */

import type { Context, MiddlewareHandler } from "hono";
import { parseApiKey, PUBLISHED_TEST_KEY } from "../core/api_key.ts";
import { ApiError } from "../core/errors.ts";
import { rateLimited, unauthorized } from "../store/outcome.ts";
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
    const sent = readKey(c);
    const key = sent?.text === PUBLISHED_TEST_KEY && !options.local ? null : sent;
    const address = limit && addressOf(c.req.header("X-Forwarded-For"), c.env);
    const settle = limit?.admit(address!, key?.hash, state.at_ms);
    if (settle === null) throw rateLimited();
    if (!key) {
      settle?.("refused");
      throw unauthorized();
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

function readKey(c: Context<Env>): PresentedKey | null {
  const header = c.req.header("Authorization") ?? "";
  const text = /^bearer /i.test(header) ? header.slice(7).trim() : "";
  const key = parseApiKey(text);
  return key && { hash: key.hash, livemode: key.mode === "live", text };
}

/** Who connects: the nearest proxy's word, or the connection's. */
function addressOf(forwarded: string | undefined, info: unknown): string {
  const last = forwarded?.split(",").at(-1)?.trim();
  const { remoteAddr } = (info ?? {}) as { remoteAddr?: { hostname?: string } };
  return last || remoteAddr?.hostname || "unknown";
}
