/** Checkouts: prices that a payer pays by a method of their choice (contract §2). */

import type { RequestOptions } from "./request_options.ts";
import { Collection } from "./resource.ts";
import type { Checkout, CreateCheckoutInput, ListCheckoutsParams } from "./resources.ts";

/** Operations on checkouts. A failed one throws a `PaymentsError`. */
export class Checkouts extends Collection<Checkout, ListCheckoutsParams> {
  protected readonly path = "/api-v1-payments/v1/checkouts";

  /** Creates a checkout. */
  create(input: CreateCheckoutInput, options?: RequestOptions): Promise<Checkout> {
    return this.transport.post([this.path], input, options);
  }

  /** Cancels a checkout. One that is not open: 409 `invalid_state`. */
  cancel(id: string, options?: RequestOptions): Promise<Checkout> {
    return this.transport.post([this.path, id, "cancel"], undefined, options);
  }
}
