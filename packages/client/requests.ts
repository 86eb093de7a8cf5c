/** Earlier requests: the first request of an idempotency key (contract §5). */

import type { ReadOptions } from "./request_options.ts";
import { Resource } from "./resource.ts";
import type { IdempotencyKey } from "./resources.ts";

/** Operations on idempotency keys. A failed one throws a `PaymentsError`. */
export class IdempotencyKeys extends Resource {
  /** Retrieves an idempotency key, to learn which request a retry has repeated. */
  retrieve(key: string, options?: ReadOptions): Promise<IdempotencyKey> {
    return this.transport.get(["/api-v1-payments/v1/idempotency_keys", key], options);
  }
}
