/** The page of a payment: status, actions, timeline, ledger, refunds, disputes and deliveries. */

import { useState } from "preact/hooks";
import { isDeposit } from "../../../shared/domain/payments/lifecycle.ts";
import { MAX_PAGE } from "../../../shared/schema/limits.ts";
import type { Payment } from "../../../shared/schema/payment.ts";
import { BankDetailsButton } from "../parts/bank_details.tsx";
import { PaymentCallout } from "./callouts.tsx";
import { call } from "../data/calls.ts";
import { Crumb } from "../parts/crumb.tsx";
import { Deliveries } from "../parts/deliveries.tsx";
import { LateMoney } from "./deposit_callout.tsx";
import { instrumentText } from "../data/instrument_text.ts";
import { Ledger } from "../parts/ledger.tsx";
import { useLive } from "../data/live.ts";
import { Cut, Reading } from "../parts/notice.tsx";
import { PaymentActions, PaymentMoves } from "./payment_actions.tsx";
import { Disputes } from "../parts/disputes.tsx";
import { Refunds } from "../parts/refunds.tsx";
import { href } from "../data/route.ts";
import { Fact, Facts, Id, Money, Status, Time } from "../parts/text.tsx";
import { Timeline } from "../parts/timeline.tsx";
import { TriggerDialog } from "../forms/trigger_dialog.tsx";
import { adviceText } from "../data/words.ts";

/** The page of a payment. */
export function PaymentPage({ id }: { id: string }) {
  const live = useLive(call("payments", "retrieve", id), { logged: true });
  return (
    <>
      <Crumb section="payments" label="Payments" />
      {live.data === null && <h1 tabIndex={-1}>Payment</h1>}
      <Reading label="this payment" live={live} rows={5}>
        {(payment) => <PaymentView payment={payment} />}
      </Reading>
    </>
  );
}

function PaymentView({ payment }: { payment: Payment }) {
  const payment_id = payment.id;
  const [triggering, setTriggering] = useState(false);
  const deliveries = useLive(call("webhookDeliveries", "list", { payment_id, limit: MAX_PAGE }));
  return (
    <>
      <div class="title payment-title">
        <div>
          <h1 tabIndex={-1}>
            <Money amount_minor={payment.amount_minor} currency={payment.currency} />
          </h1>
          <p class="under-title">
            <Status of={payment.status} />
            <span>{instrumentText(payment)}</span>
            <Id id={payment_id} />
          </p>
        </div>
        <PaymentActions payment={payment} />
      </div>
      <PaymentCallout payment={payment} />
      {payment.failure_code && (
        <p class="notice bad">
          {payment.failure_message ?? "The payment did not succeed"}{" "}
          <code>{payment.failure_code}</code>
          {payment.return_code && <code>{payment.return_code}</code>}
          {payment.advice && (
            <>
              <br />
              {adviceText(payment.advice)} <code>{payment.advice}</code>
            </>
          )}
        </p>
      )}
      <div class="columns">
        <div class="main-column">
          <section class="card" aria-labelledby="timeline">
            <h2 id="timeline">Timeline</h2>
            <Timeline of={{ payment_id }} />
          </section>
          <section class="card" aria-labelledby="ledger">
            <h2 id="ledger">Ledger</h2>
            <Ledger of={{ payment_id }} />
          </section>
          <section class="card" aria-labelledby="refunds">
            <h2 id="refunds">Refunds</h2>
            <Refunds payment_id={payment_id} />
          </section>
          {payment.amount_captured > 0 && <Disputes payment_id={payment_id} />}
          <section class="card" aria-labelledby="deliveries">
            <div class="card-title">
              <h2 id="deliveries">Webhook deliveries</h2>
              <button type="button" onClick={() => setTriggering(true)}>Trigger an event…</button>
            </div>
            <Deliveries live={deliveries} shows="endpoint" grouped />
            {deliveries.data && <Cut page={deliveries.data} />}
          </section>
        </div>
        <aside class="side-column" aria-label="About this payment">
          <PaymentMoves payment={payment} />
          {isDeposit(payment) && payment.next_action === null && <LateMoney payment={payment} />}
          <section class="card details" aria-labelledby="details">
            <h2 id="details">Details</h2>
            <Details payment={payment} />
            <BankDetailsButton of={payment} />
          </section>
        </aside>
      </div>
      {triggering && <TriggerDialog payment_id={payment_id} close={() => setTriggering(false)} />}
    </>
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
    ["Disputed", payment.amount_disputed],
  ];
  return amounts.flatMap(([name, amount]) => amount ? [[name, amount]] : []);
}

function Details({ payment }: { payment: Payment }) {
  const { customer, currency, method, capture_before } = payment;
  return (
    <Facts>
      {amountsOf(payment).map(([name, amount_minor]) => (
        <Fact key={name} name={name}>
          <Money amount_minor={amount_minor} currency={currency} />
        </Fact>
      ))}
      <Fact name="Capture">{payment.capture === "manual" ? "Manual" : null}</Fact>
      <Fact name="Capture before">
        {capture_before && <Time at={capture_before} />}
      </Fact>
      <Fact name="Settlement">{payment.settlement === "manual" ? "Manual" : null}</Fact>
      <Fact name="Return URL">{payment.return_url}</Fact>
      <Fact name="Customer">{customer?.email}</Fact>
      <Fact name="Name">{customer?.name}</Fact>
      <Fact name="Customer id">
        {customer?.id && (
          <a href={href(["payments"], { customer_id: customer.id })}>{customer.id}</a>
        )}
      </Fact>
      <Fact name="Description">{payment.description}</Fact>
      <Fact name="Reference">{payment.reference}</Fact>
      {method?.type === "sepa" && method.mandate && (
        <>
          <Fact name="Mandate">{method.mandate.id}</Fact>
          <Fact name="Sequence of the mandate">
            <code>{method.mandate.sequence}</code>
          </Fact>
          <Fact name="Signed">{method.mandate.signed_at}</Fact>
          <Fact name="Due on">{method.due_on}</Fact>
        </>
      )}
      {method?.type === "stablecoin" && (
        <>
          <Fact name="Address">{method.wallet.address}</Fact>
          <Fact name="Network">{method.wallet.network}</Fact>
          <Fact name="Transaction">{method.wallet.tx_hash}</Fact>
        </>
      )}
      <Fact name="Capability">
        <code>{payment.capability}</code>
      </Fact>
      <Fact name="Sequence">{payment.sequence}</Fact>
      <Fact name="Created">
        <Time at={payment.created_at} />
      </Fact>
      <Fact name="Updated">
        <Time at={payment.updated_at} />
      </Fact>
      {Object.entries(payment.metadata).map(([name, value]) => (
        <Fact key={name} name={`metadata.${name}`}>{value}</Fact>
      ))}
    </Facts>
  );
}
