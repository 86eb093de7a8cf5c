/** Customers: the erasure of their personal data (contract §2). */

import type { RequestOptions } from "./request_options.ts";
import { Resource } from "./resource.ts";
import type { ErasedCustomer } from "./resources.ts";

const CUSTOMERS = "/api-v1-payments/v1/customers";

/** Operations on customers. A failed one throws a `PaymentsError`. */
export class Customers extends Resource {
  /**
   * Erases the e-mail address and name of a customer, and ends its instruments. While a payment,
   * refund or dispute of the customer is open: 409 `invalid_state`.
   * @param id your own id of the customer
   */
  erase(id: string, options?: RequestOptions): Promise<ErasedCustomer> {
    return this.transport.delete([CUSTOMERS, id], options);
  }

  /** Does the same for payments with exactly this e-mail address and no `customer.id`. */
  eraseByEmail(email: string, options?: RequestOptions): Promise<ErasedCustomer> {
    return this.transport.send(
      { method: "DELETE", path: [CUSTOMERS], query: { email } },
      options,
    );
  }
}
