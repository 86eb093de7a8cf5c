/** The customer of a payment, a checkout or an instrument, with links to all of the customer. */

import type { Checkout, Instrument, Payment } from "../../../packages/client/mod.ts";
import { href } from "../data/route.ts";
import { Fact } from "./text.tsx";

/** The facts. Renders nothing without a customer. */
export function CustomerFacts(
  { of: { customer } }: { of: Pick<Payment | Checkout | Instrument, "customer"> },
) {
  const customer_id = customer?.id;
  return (
    <>
      <Fact name="Customer">{customer?.email}</Fact>
      <Fact name="Name">{customer?.name}</Fact>
      {customer_id && (
        <>
          <Fact name="Customer id">
            <a href={href(["payments"], { customer_id })}>{customer_id}</a>
          </Fact>
          <Fact name="Instruments">
            <a href={href(["instruments"], { customer_id })}>Of this customer</a>
          </Fact>
        </>
      )}
    </>
  );
}
