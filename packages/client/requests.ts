/** Earlier requests: the first request of an idempotency key (contract §5). */

import type { ReadOptions } from "./request_options.ts";
import type { Transport } from "./transport.ts";
import type { IdempotencyKey } from "./resources.ts";

/** Operations on idempotency keys. A failed one throws a `PaymentsError`. */
export class IdempotencyKeys {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Retrieves an idempotency key, to learn which request a retry has repeated. */
  retrieve(key: string, options?: ReadOptions): Promise<IdempotencyKey> {
    const path = ["/api-v1-payments/v1/idempotency_keys", key];
    return this.#transport.send({ method: "GET", path }, options);
  }
}
