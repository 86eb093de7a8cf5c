/** The page of a payment: status, actions, timeline, ledger, refunds and webhook deliveries. */

import { useState } from "preact/hooks";
import type { Payment } from "../client/mod.ts";
import { MAX_PAGE } from "../shared/schema/limits.ts";
import { call } from "./calls.ts";
import { Deliveries } from "./deliveries.tsx";
import { instrumentText } from "./instrument_text.ts";
import { Ledger } from "./ledger.tsx";
import { useLive } from "./live.ts";
import { Cut, Empty, Reading } from "./notice.tsx";
import { AuthenticationCall, Moves, PaymentActions } from "./payment_actions.tsx";
import { href } from "./route.ts";
import { Fact, Facts, Id, Money, Status, Time } from "./text.tsx";
import { Timeline } from "./timeline.tsx";
import { TriggerDialog } from "./trigger_dialog.tsx";

/** The page of a payment. */
export function PaymentPage({ id }: { id: string }) {
  const live = useLive(call("payments", "retrieve", id), { logged: true });
  return (
    <>
      <p class="crumb">
        <a href={href(["payments"])}>Payments</a>
      </p>
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
  const refunds = useLive(call("payments", "listRefunds", payment_id, { limit: MAX_PAGE }));
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
      {payment.status === "requires_action" && <AuthenticationCall payment={payment} />}
      {payment.failure_code && (
        <p class="notice bad">
          {payment.failure_message ?? "The payment did not succeed"}{" "}
          <code>{payment.failure_code}</code>
          {payment.return_code && <code>{payment.return_code}</code>}
        </p>
      )}
      <div class="columns">
        <div class="main-column">
          <section class="card" aria-labelledby="timeline">
            <h2 id="timeline">Timeline</h2>
            <Timeline payment_id={payment_id} />
          </section>
          <section class="card" aria-labelledby="ledger">
            <h2 id="ledger">Ledger</h2>
            <Ledger payment={payment} />
          </section>
          <section class="card" aria-labelledby="refunds">
            <h2 id="refunds">Refunds</h2>
            <Reading label="refunds" live={refunds} rows={1}>
              {({ data }) =>
                data.length === 0
                  ? <Empty title="No refunds" />
                  : (
                    <table class="list" aria-label="Refunds">
                      <thead>
                        <tr>
                          <th scope="col" class="right">Amount</th>
                          <th scope="col">Reason</th>
                          <th scope="col" class="wide-only">Id</th>
                          <th scope="col">Created</th>
                        </tr>
                      </thead>
                      <tbody>
                        {data.map((refund) => (
                          <tr key={refund.id}>
                            <td class="right">
                              <Money
                                amount_minor={refund.amount_minor}
                                currency={refund.currency}
                              />
                            </td>
                            <td>{refund.reason?.replaceAll("_", " ") ?? "None"}</td>
                            <td class="grow wide-only">
                              <Id id={refund.id} />
                            </td>
                            <td class="when">
                              <Time at={refund.created_at} />
                            </td>
                          </tr>
                        ))}
                      </tbody>
                    </table>
                  )}
            </Reading>
            {refunds.data && <Cut page={refunds.data} />}
          </section>
          <section class="card" aria-labelledby="deliveries">
            <div class="card-title">
              <h2 id="deliveries">Webhook deliveries</h2>
              <button type="button" onClick={() => setTriggering(true)}>Trigger an event…</button>
            </div>
            <Deliveries live={deliveries} shows="endpoint" />
            {deliveries.data && <Cut page={deliveries.data} />}
          </section>
        </div>
        <aside class="side-column" aria-label="About this payment">
          <Moves payment={payment} />
          <section class="card details" aria-labelledby="details">
            <h2 id="details">Details</h2>
            <Details payment={payment} />
          </section>
        </aside>
      </div>
      {triggering && <TriggerDialog payment_id={payment_id} close={() => setTriggering(false)} />}
    </>
  );
}

function Details({ payment }: { payment: Payment }) {
  const { customer, currency, method } = payment;
  return (
    <Facts>
      {payment.amount_refunded > 0 && (
        <Fact name="Refunded">
          <Money amount_minor={payment.amount_refunded} currency={currency} />
        </Fact>
      )}
      <Fact name="Customer">{customer?.email}</Fact>
      <Fact name="Name">{customer?.name}</Fact>
      <Fact name="Description">{payment.description}</Fact>
      <Fact name="Reference">{payment.reference}</Fact>
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
