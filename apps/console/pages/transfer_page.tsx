/** The page of a transfer: status, actions, timeline, ledger and deliveries. */

import type { Transfer } from "../../../packages/client/mod.ts";
import { transferAdvances } from "../../../shared/domain/payments/lifecycle.ts";
import { call } from "../data/calls.ts";
import { ConfirmButton } from "../parts/confirm_dialog.tsx";
import { destinationText } from "../data/method_text.ts";
import { amountText } from "../data/money.ts";
import { MoneyPage } from "./money_page.tsx";
import { Moves } from "../parts/moves.tsx";
import { resourcePage } from "../parts/page_parts.tsx";
import { PayeeCallout } from "../parts/payee_check.tsx";
import { Fact } from "../parts/text.tsx";
import { label, TRANSFER_ADVANCES } from "../data/words.ts";

function TransferView({ of: transfer }: { of: Transfer }) {
  const transfer_id = transfer.id;
  return (
    <MoneyPage
      of={transfer}
      subject={{ transfer_id }}
      text={`To ${destinationText(transfer.destination)}`}
      actions={transfer.status === "pending" && <CancelButton transfer={transfer} />}
      callout={<PayeeCallout transfer={transfer} />}
      moves={
        <Moves
          moves={transferAdvances(transfer).map((to) => ({
            to,
            text: TRANSFER_ADVANCES[to],
            build: () => (options) =>
              call("sandbox", "advanceTransfer", transfer_id, { to }, options),
          }))}
          none={`${label(transfer.status)} is final: no other status can follow.`}
        />
      }
      details={<Details transfer={transfer} />}
    />
  );
}

function CancelButton({ transfer: { id, amount_minor, currency } }: { transfer: Transfer }) {
  return (
    <div class="title-actions">
      <ConfirmButton
        act="Cancel transfer"
        build={(options) => call("transfers", "cancel", id, options)}
        done="Transfer cancelled."
      >
        <p>
          {amountText(amount_minor, currency)}{" "}
          go back to the available balance. A cancelled transfer stays cancelled.
        </p>
      </ConfirmButton>
    </div>
  );
}

function Details({ transfer }: { transfer: Transfer }) {
  const { destination, payee_check } = transfer;
  return (
    <>
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
      <Fact name="Created" at={transfer.created_at} />
      <Fact name="Completed" at={transfer.completed_at} />
      <Fact name="Cancelled" at={transfer.cancelled_at} />
    </>
  );
}

export const TransferPage = resourcePage(
  "transfers",
  (id) => call("transfers", "retrieve", id),
  TransferView,
);
