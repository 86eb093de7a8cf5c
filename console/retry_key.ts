/**
 * The idempotency keys of the requests of a form or a button. If nobody knows whether a request took
 * effect, the same request gets the same key again, so that it takes effect at most once.
 */

import { useRef } from "preact/hooks";
import type { RequestOptions } from "../client/mod.ts";
import type { Call } from "./calls.ts";
import type { Failure } from "./failure.ts";

/** Returns the call with the options of its request, such as its idempotency key. */
export type Build<T> = (options: RequestOptions) => Call<T>;

/** Keeps the key of the last request while its effect is unknown. */
export function useRetryKey() {
  const undecided = useRef<{ request: string; key: string } | null>(null);
  return {
    /**
     * Returns the key for a request: `own`, or that of the same request before, or a new one.
     * @throws {FieldError} if the form cannot become a request
     */
    keyFor(build: Build<unknown>, own: string | null = null): string {
      const request = JSON.stringify(build({}));
      const again = undecided.current?.request === request ? undecided.current.key : null;
      const key = own ?? again ?? crypto.randomUUID();
      undecided.current = { request, key };
      return key;
    },
    /** Forgets the key, unless the failure leaves open whether the request took effect. */
    settle(failure: Failure | null): void {
      if (failure?.kind !== "undecided") undecided.current = null;
    },
  };
}
