/**
 * The idempotency keys of the requests of forms and buttons. If nobody knows whether a request took
 * effect, the same request gets the same key again, so that it takes effect at most once. This also
 * holds after its form was closed and opened again.
 */

import type { RequestOptions } from "../../../packages/client/mod.ts";
import type { Call } from "./calls.ts";
import type { Failure } from "./failure.ts";
import { sandboxId } from "./session.ts";

/** Returns the call with the options of its request, such as its idempotency key. */
export type Build<T> = (options: RequestOptions) => Call<T>;

interface RetryKey {
  key: string;
  /** Forgets the key, unless the failure leaves open whether the request took effect. */
  settle(failure: Failure | null): void;
}

/** The keys of the requests whose effect is unknown, by their sandboxes and texts. */
const undecided = new Map<string, string>();

/**
 * Returns the key for a request: `own`, or that of the same request before, or a new one.
 * @throws {FieldError} if the form cannot become a request
 */
export function retryKey(build: Build<unknown>, own: string | null = null): RetryKey {
  const request = JSON.stringify([sandboxId(), build({})]);
  const key = own ?? undecided.get(request) ?? crypto.randomUUID();
  undecided.set(request, key);
  return {
    key,
    settle(failure) {
      if (failure?.kind !== "undecided") undecided.delete(request);
    },
  };
}
