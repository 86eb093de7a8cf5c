/** The page of a transfer: status, actions, timeline, ledger and deliveries. */

import { useState } from "preact/hooks";
import type { Transfer } from "../../../packages/client/mod.ts";
import { transferAdvances } from "../../../shared/domain/payments/lifecycle.ts";
import { MAX_PAGE } from "../../../shared/schema/limits.ts";
import { BankDetailsButton } from "../parts/bank_details.tsx";
import { call } from "../data/calls.ts";
import { ConfirmDialog } from "../parts/confirm_dialog.tsx";
import { Crumb } from "../parts/crumb.tsx";
import { Deliveries } from "../parts/deliveries.tsx";
import { destinationText } from "../data/instrument_text.ts";
import { Ledger } from "../parts/ledger.tsx";
import { useLive } from "../data/live.ts";
import { formatMinor } from "../data/money.ts";
import { Moves } from "../parts/moves.tsx";
import { Cut, Reading } from "../parts/notice.tsx";
import { PayeeCallout } from "../parts/payee_check.tsx";
import { Fact, Facts, Id, Money, Status, Time } from "../parts/text.tsx";
import { Timeline } from "../parts/timeline.tsx";
import { label, transferAdvanceText } from "../data/words.ts";

/** The page of a transfer. */
export function TransferPage({ id }: { id: string }) {
  const live = useLive(call("transfers", "retrieve", id), { logged: true });
  return (
    <>
      <Crumb section="transfers" label="Transfers" />
      {live.data === null && <h1 tabIndex={-1}>Transfer</h1>}
      <Reading label="this transfer" live={live} rows={5}>
        {(transfer) => <TransferView transfer={transfer} />}
      </Reading>
    </>
  );
}

function TransferView({ transfer }: { transfer: Transfer }) {
  const transfer_id = transfer.id;
  const deliveries = useLive(call("webhookDeliveries", "list", { transfer_id, limit: MAX_PAGE }));
  return (
    <>
      <div class="title payment-title">
        <div>
          <h1 tabIndex={-1}>
            <Money amount_minor={transfer.amount_minor} currency={transfer.currency} />
          </h1>
          <p class="under-title">
            <Status of={transfer.status} />
            <span>To {destinationText(transfer.destination)}</span>
            <Id id={transfer_id} />
          </p>
        </div>
        {transfer.status === "pending" && <CancelButton transfer={transfer} />}
      </div>
      <PayeeCallout transfer={transfer} />
      {transfer.failure_code && (
        <p class="notice bad">
          {transfer.failure_message ?? "The transfer did not succeed"}{" "}
          <code>{transfer.failure_code}</code>
          {transfer.return_code && <code>{transfer.return_code}</code>}
        </p>
      )}
      <div class="columns">
        <div class="main-column">
          <section class="card" aria-labelledby="timeline">
            <h2 id="timeline">Timeline</h2>
            <Timeline of={{ transfer_id }} />
          </section>
          <section class="card" aria-labelledby="ledger">
            <h2 id="ledger">Ledger</h2>
            <Ledger of={{ transfer_id }} />
          </section>
          <section class="card" aria-labelledby="deliveries">
            <h2 id="deliveries">Webhook deliveries</h2>
            <Deliveries live={deliveries} shows="endpoint" grouped />
            {deliveries.data && <Cut page={deliveries.data} />}
          </section>
        </div>
        <aside class="side-column" aria-label="About this transfer">
          <Moves
            moves={transferAdvances(transfer).map((to) => ({
              to,
              text: transferAdvanceText(to),
              build: () => (options) =>
                call("sandbox", "advanceTransfer", transfer_id, { to }, options),
            }))}
            none={`${label(transfer.status)} is final: no other status can follow.`}
          />
          <section class="card details" aria-labelledby="details">
            <h2 id="details">Details</h2>
            <Details transfer={transfer} />
            <BankDetailsButton of={transfer} />
          </section>
        </aside>
      </div>
    </>
  );
}

function CancelButton({ transfer: { id, amount_minor, currency } }: { transfer: Transfer }) {
  const [open, setOpen] = useState(false);
  return (
    <div class="title-actions">
      <button type="button" onClick={() => setOpen(true)}>Cancel transfer…</button>
      {open && (
        <ConfirmDialog
          title="Cancel the transfer?"
          keep="Keep transfer"
          act="Cancel transfer"
          acting="Cancelling…"
          build={(options) => call("transfers", "cancel", id, options)}
          done="Transfer cancelled."
          close={() => setOpen(false)}
        >
          <p>
            {formatMinor(amount_minor, currency)} {currency}{" "}
            go back to the available balance. A cancelled transfer stays cancelled.
          </p>
        </ConfirmDialog>
      )}
    </div>
  );
}

function Details({ transfer }: { transfer: Transfer }) {
  const { destination, payee_check, completed_at, cancelled_at } = transfer;
  return (
    <Facts>
      {destination.type === "wallet"
        ? (
          <>
            <Fact name="Address">{destination.wallet.address}</Fact>
            <Fact name="Network">{destination.wallet.network}</Fact>
            <Fact name="Transaction">{destination.wallet.tx_hash}</Fact>
          </>
        )
        : <Fact name="IBAN">{destinationText(destination)}</Fact>}
      <Fact name="Payee">{payee_check && label(payee_check)}</Fact>
      <Fact name="Speed">{transfer.speed === "instant" ? "Instant" : null}</Fact>
      <Fact name="Description">{transfer.description}</Fact>
      <Fact name="Sequence">{transfer.sequence}</Fact>
      <Fact name="Created">
        <Time at={transfer.created_at} />
      </Fact>
      <Fact name="Completed">{completed_at && <Time at={completed_at} />}</Fact>
      <Fact name="Cancelled">{cancelled_at && <Time at={cancelled_at} />}</Fact>
      {Object.entries(transfer.metadata).map(([name, value]) => (
        <Fact key={name} name={`metadata.${name}`}>{value}</Fact>
      ))}
    </Facts>
  );
}
