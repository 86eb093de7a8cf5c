/** The actions on a payment. The lifecycle rules of the service decide which of them it shows. */

import { useState } from "preact/hooks";
import type { DisputeReason } from "../../../packages/client/mod.ts";
import { DISPUTE_REASONS } from "../../../shared/core/vocabulary.ts";
import {
  advancesOf,
  isCancellable,
  isCapturable,
  isRefundable,
} from "../../../shared/domain/payments/lifecycle.ts";
import { refundable } from "../../../shared/domain/payment_statuses.ts";
import type { Payment } from "../../../shared/schema/payment.ts";
import { RefundDialog } from "../forms/amount_dialogs.tsx";
import { call } from "../data/calls.ts";
import { ConfirmDialog } from "../parts/confirm_dialog.tsx";
import { optionsOf } from "../parts/fields.tsx";
import { amountText } from "../data/money.ts";
import { may } from "../data/permissions.ts";
import { Moves } from "../parts/moves.tsx";
import { href } from "../data/route.ts";
import { advanceText, label } from "../data/words.ts";

/** The link to compare it, and the buttons to refund and to cancel, if the status allows it. */
export function PaymentActions({ payment }: { payment: Payment }) {
  const [open, setOpen] = useState<"refund" | "cancel" | null>(null);
  const close = () => setOpen(null);
  return (
    <div class="title-actions">
      <a class="button" href={href(["compare"], { payment_id: payment.id })}>Compare…</a>
      {isCancellable(payment) && may("payments.cancel") && (
        <button
          type="button"
          onClick={() => setOpen("cancel")}
        >
          Cancel payment…
        </button>
      )}
      {isRefundable(payment) && refundable(payment) > 0 && may("payments.refund") && (
        <button
          type="button"
          class="primary"
          onClick={() => setOpen("refund")}
        >
          Refund…
        </button>
      )}
      {open === "refund" && <RefundDialog payment={payment} close={close} />}
      {open === "cancel" && <CancelDialog payment={payment} close={close} />}
    </div>
  );
}

function CancelDialog({ payment, close }: { payment: Payment; close: () => void }) {
  const amount = amountText(payment.amount_minor, payment.currency);
  return (
    <ConfirmDialog
      act="Cancel payment"
      build={(options) => call("payments", "cancel", payment.id, options)}
      done="Payment cancelled."
      close={close}
    >
      <p>
        {isCapturable(payment)
          ? `The card gets the ${amount} back that are held on it, and no capture can take them.`
          : `The payer can no longer pay the ${amount}.`} A cancelled payment stays cancelled.
      </p>
    </ConfirmDialog>
  );
}

/** The reasons of a dispute. The first one is the default of the API. */
const REASONS = {
  label: "Reason",
  options: optionsOf(
    ["general", ...DISPUTE_REASONS.filter((reason) => reason !== "general")],
    label,
  ),
};

/** The buttons that advance the payment to another status. */
export function PaymentMoves({ payment }: { payment: Payment }) {
  const { id } = payment;
  return (
    <Moves
      moves={advancesOf(payment).map((to) => ({
        to,
        text: advanceText(payment, to),
        ...(to === "chargeback" && { choice: REASONS }),
        build: (chosen) => (options) => {
          const reason = chosen === "" ? {} : { reason: chosen as DisputeReason };
          return call("sandbox", "advance", id, { to, ...reason }, options);
        },
      }))}
      none={whyNoMove(payment)}
    />
  );
}

function whyNoMove({ status, amount_refunding }: Payment): string {
  return amount_refunding > 0
    ? "Pending refunds hold the rest of the payment. Complete one of them or make it fail."
    : `${label(status)} is final: no other status can follow.`;
}
