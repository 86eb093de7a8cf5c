/** The operations of `api-v1-payments` on customers: the erasure of personal data. */

import { invalidParameter } from "../core/errors.ts";
import { EraseByEmailQuery } from "../schema/customer.ts";
import { MAX_CUSTOMER_ID } from "../schema/limits.ts";
import { CustomerId } from "../schema/values.ts";
import { type Route, route } from "./route.ts";

const erasure = {
  group: "Customers",
  response: "ErasedCustomer",
  method: "DELETE",
  scope: "customers:erase",
  errors: ["invalid_state"],
  frees_storage: true,
} as const;

export const CUSTOMER_ROUTES: readonly Route[] = [
  route({
    ...erasure,
    id: "eraseCustomer",
    summary: "Erase a customer",
    description:
      "Takes the e-mail address and name of the customer from all payments, events, stored " +
      "responses and logs, and ends the customer's instruments. Amounts and ids stay. While a " +
      "payment, refund or dispute of the customer is open it is 409. Percent-encode the id.",
    paths: ["/v1/customers/:customer"],
    run({ deps, request: { access, idempotency }, customer_id }) {
      if (!CustomerId.safeParse(customer_id).success) {
        throw invalidParameter(
          "customer",
          `No customer can have the id in the path: percent-encode 1 to ${MAX_CUSTOMER_ID} ` +
            'characters of UTF-8, without U+0000, and not "." or ".."',
        );
      }
      return deps.store.eraseCustomer(access, idempotency, { customer_id });
    },
  }),
  route({
    ...erasure,
    id: "eraseCustomerByEmail",
    summary: "Erase a customer without an id",
    description:
      "Does the same for payments that have exactly this e-mail address and no `customer.id`.",
    paths: ["/v1/customers"],
    query: EraseByEmailQuery,
    run: ({ deps, request: { access, idempotency }, query: { email } }) =>
      deps.store.eraseCustomer(access, idempotency, { email }),
  }),
];
