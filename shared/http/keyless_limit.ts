/**
 * Limits the requests of routes that take no API key, by network, as failed authentications are
 * limited: those that are refused, and where a response is large also the others.
 */

import type { Context } from "hono";
import { ApiError } from "../core/errors.ts";
import { rateLimited } from "../store/outcome.ts";
import { AddressLimit } from "./address_limit.ts";
import { addressOf } from "./api_key_header.ts";
import type { Dependencies } from "./dependencies.ts";
import type { Env } from "./request_state.ts";

/** Runs the handler of a route, unless the network of the request has to wait. */
type Guard = (c: Context<Env>, run: () => Promise<Response>) => Promise<Response>;

/**
 * Makes the guard of a route. Without rate limits it admits every request.
 * @param options.counts_responses responses with a body count as refused requests do
 */
export function keylessLimit(
  { rate_limits }: Dependencies,
  { counts_responses = false } = {},
): Guard {
  const limit = rate_limits === null ? null : new AddressLimit();
  return async (c, run) => {
    const address = addressOf(c.req.header("X-Forwarded-For"), c.env);
    const refuse = limit?.admit(address, undefined, c.get("state").at_ms);
    if (refuse === null) throw rateLimited();
    try {
      const response = await run();
      if (counts_responses && response.status === 200) refuse?.("refused");
      return response;
    } catch (error) {
      if (error instanceof ApiError && error.status < 500) refuse?.("refused");
      throw error;
    }
  };
}
