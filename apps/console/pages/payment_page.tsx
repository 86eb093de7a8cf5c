/** The page of a payment: status, actions, timeline, ledger, refunds, disputes and deliveries. */

import type { ComponentChildren } from "preact";
import { isDeposit } from "../../../shared/domain/payments/lifecycle.ts";
import type { CreatePaymentBody } from "../../../shared/schema/payment_body.ts";
import type { MethodMember, Payment } from "../../../shared/schema/payment.ts";
import { PaymentCallout } from "./callouts.tsx";
import { call } from "../data/calls.ts";
import { CustomerFacts } from "../parts/customer_facts.tsx";
import { Card, NewLink, resourcePage } from "../parts/page_parts.tsx";
import { LateMoney } from "./deposit_callout.tsx";
import { Disputes } from "../parts/disputes.tsx";
import { methodText } from "../data/method_text.ts";
import { Mention } from "../parts/mention.tsx";
import { MoneyPage } from "./money_page.tsx";
import { PaymentActions, PaymentMoves } from "./payment_actions.tsx";
import { Refunds } from "../parts/refunds.tsx";
import { Fact, Money } from "../parts/text.tsx";
import { adviceText } from "../data/words.ts";

function PaymentView({ of: payment }: { of: Payment }) {
  const payment_id = payment.id;
  return (
    <MoneyPage
      of={payment}
      subject={{ payment_id }}
      text={methodText(payment)}
      actions={<PaymentActions payment={payment} />}
      callout={<PaymentCallout payment={payment} />}
      advice={payment.advice && (
        <>
          <br />
          {adviceText(payment.advice)} <code>{payment.advice}</code>
          {payment.off_session && payment.advice === "authenticate" && (
            <>
              {" "}
              <NewLink section="payments" query={{ instrument: payment.instrument_id ?? "" }}>
                Charge with the payer
              </NewLink>
            </>
          )}
        </>
      )}
      records={
        <>
          <Card title="Refunds">
            <Refunds payment_id={payment_id} />
          </Card>
          {payment.amount_captured > 0 && <Disputes payment_id={payment_id} />}
        </>
      }
      moves={
        <>
          <PaymentMoves payment={payment} />
          {isDeposit(payment) && payment.next_action === null && (
            <LateMoney
              payment={payment}
            />
          )}
        </>
      }
      details={<Details payment={payment} />}
    />
  );
}

/** Amounts that differ from the amount of the payment. An amount of 0 is not shown. */
function amountsOf(payment: Payment): [name: string, amount_minor: number][] {
  const { amount_minor, amount_captured } = payment;
  const amounts: [string, number | null][] = [
    ["Captured", amount_captured === amount_minor ? 0 : amount_captured],
    ["Received", payment.amount_received],
    ["Refunded", payment.amount_refunded],
    ["Refund pending", payment.amount_refunding],
    ["Chargeback", payment.amount_disputed],
  ];
  return amounts.flatMap(([name, amount]) => amount ? [[name, amount]] : []);
}

/**
 * The fields of a create that a payment shows, and the members of its method. Some have no line of
 * their own here.
 */
type ShownField = keyof CreatePaymentBody & keyof Payment | MethodMember;
type OtherPlace =
  | ("amount" | "amount_minor" | "currency" | "payer")
  | ("capability" | "method_kind" | "metadata")
  // The title names these (`methodText`).
  | ("card" | "iban");

function Details({ payment }: { payment: Payment }) {
  const { currency, method, instrument_id, off_session } = payment;
  const lines: Record<Exclude<ShownField, OtherPlace>, ComponentChildren> = {
    capture: (
      <>
        <Fact name="Capture">{payment.capture === "manual" ? "Manual" : null}</Fact>
        <Fact name="Capture before" at={payment.capture_before} />
      </>
    ),
    off_session: instrument_id && (
      <>
        <Fact name="Instrument">
          <Mention id={instrument_id} />
        </Fact>
        <Fact name="Payer">{off_session ? "Not present" : "Present"}</Fact>
      </>
    ),
    settlement: <Fact name="Settlement">{payment.settlement === "manual" ? "Manual" : null}</Fact>,
    return_url: <Fact name="Return URL">{payment.return_url}</Fact>,
    customer: <CustomerFacts of={payment} />,
    description: <Fact name="Description">{payment.description}</Fact>,
    reference: <Fact name="Reference">{payment.reference}</Fact>,
    mandate: method && "mandate" in method && method.mandate && (
      <>
        <Fact name="Mandate">{method.mandate.id}</Fact>
        <Fact name="Sequence of the mandate" code={method.mandate.sequence} />
        <Fact name="Signed" day={method.mandate.signed_at} />
      </>
    ),
    due_on: method && "due_on" in method && <Fact name="Due on" day={method.due_on} />,
    wallet: method && "wallet" in method && (
      <>
        <Fact name="Address">{method.wallet.address}</Fact>
        <Fact name="Network">{method.wallet.network}</Fact>
        <Fact name="Transaction">{method.wallet.tx_hash}</Fact>
      </>
    ),
  };
  return (
    <>
      {amountsOf(payment).map(([name, amount_minor]) => (
        <Fact key={name} name={name}>
          <Money amount_minor={amount_minor} currency={currency} />
        </Fact>
      ))}
      {Object.values(lines)}
      {payment.checkout_id && (
        <Fact name="Checkout">
          <Mention id={payment.checkout_id} />
        </Fact>
      )}
      <Fact name="Capability" code={payment.capability} />
      <Fact name="Sequence">{payment.sequence}</Fact>
      <Fact name="Created" at={payment.created_at} />
      <Fact name="Updated" at={payment.updated_at} />
    </>
  );
}

export const PaymentPage = resourcePage(
  "payments",
  (id) => call("payments", "retrieve", id),
  PaymentView,
);
