/**
 * The routes that take no API key: each request takes a place of its network before its body is
 * read. Refused requests are limited by network, as failed authentications are, and where a
 * response is large also the others.
 */

import type { Context } from "hono";
import { ApiError } from "../core/errors.ts";
import { rateLimited } from "../store/outcome.ts";
import { AddressLimit } from "./address_limit.ts";
import { networkOfRequest } from "./api_key_header.ts";
import type { Dependencies } from "./dependencies.ts";
import type { Env } from "./request_state.ts";

/** Runs the handler of a route. Throws `rate_limited` if the network of the request has to wait. */
type Guard = (c: Context<Env>, run: () => Promise<Response>) => Promise<Response>;

/**
 * Makes the guard of a route. Without rate limits only the places are limited.
 * @param options.counts_responses responses with a body count as refused requests do
 */
export function keylessLimit(
  { rate_limits, places }: Dependencies,
  { counts_responses = false } = {},
): Guard {
  const limit = rate_limits === null ? null : new AddressLimit();
  return async (c, run) => {
    const network = networkOfRequest(c);
    const { at_ms } = c.get("state");
    if (limit?.isOver(network, at_ms)) throw rateLimited();
    return await places.keyless.run([network], async () => {
      try {
        const response = await run();
        if (counts_responses && response.status === 200) limit?.fail(network, at_ms);
        return response;
      } catch (error) {
        if (error instanceof ApiError && error.status < 500) limit?.fail(network, at_ms);
        throw error;
      }
    });
  };
}
