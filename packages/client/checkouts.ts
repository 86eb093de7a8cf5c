/** Checkouts: prices that a payer pays by a method of their choice (contract §2). */

import { type List, listOf } from "./list.ts";
import type { ReadOptions, RequestOptions } from "./request_options.ts";
import type { Transport } from "./transport.ts";
import type { Checkout, CreateCheckoutInput, ListCheckoutsParams } from "./resources.ts";

const CHECKOUTS = "/api-v1-payments/v1/checkouts";

/** Operations on checkouts. A failed one throws a `PaymentsError`. */
export class Checkouts {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Creates a checkout. */
  create(input: CreateCheckoutInput, options?: RequestOptions): Promise<Checkout> {
    return this.#transport.send({ method: "POST", path: [CHECKOUTS], body: input }, options);
  }

  /** Retrieves a checkout. */
  retrieve(id: string, options?: ReadOptions): Promise<Checkout> {
    return this.#transport.send({ method: "GET", path: [CHECKOUTS, id] }, options);
  }

  /** Lists checkouts, newest first. */
  list(params?: ListCheckoutsParams, options?: ReadOptions): List<Checkout> {
    return listOf(this.#transport, [CHECKOUTS], params, options);
  }

  /** Cancels a checkout. One that is not open: 409 `invalid_state`. */
  cancel(id: string, options?: RequestOptions): Promise<Checkout> {
    return this.#transport.send({ method: "POST", path: [CHECKOUTS, id, "cancel"] }, options);
  }
}
