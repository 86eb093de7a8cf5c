/** The dialogs that capture or refund an amount of a payment. */

import type { RefundReason, RequestOptions } from "../../../packages/client/mod.ts";
import { REFUND_REASONS } from "../../../shared/core/vocabulary.ts";
import { isDeposit } from "../../../shared/domain/payments/lifecycle.ts";
import { refundable } from "../../../shared/domain/payment_statuses.ts";
import { RAILS } from "../../../shared/domain/rails.ts";
import type { Payment } from "../../../shared/schema/payment.ts";
import { call } from "../data/calls.ts";
import { amountOf, metadataOf } from "./create_body.ts";
import { useDraft } from "../data/draft.ts";
import { optionsOf, SelectField, TextField } from "../parts/fields.tsx";
import { FormDialog } from "../parts/form.tsx";
import { MetadataFields, type MetadataRows } from "./metadata_fields.tsx";
import { amountText, plainMinor } from "../data/money.ts";
import { label } from "../data/words.ts";

interface AmountDialog {
  payment: Payment;
  close: () => void;
}

export function CaptureDialog({ payment, close }: AmountDialog) {
  const { id, amount_minor, currency } = payment;
  const first = { amount: plainMinor(amount_minor, currency) };
  const { draft, field, kept } = useDraft(first, `capture ${id}`);
  return (
    <FormDialog
      title="Capture"
      close={close}
      kept={kept}
      build={(options) => call("payments", "capture", id, inputOf(draft, currency), options)}
      done={({ amount_captured }) => `${amountText(amount_captured, currency)} captured.`}
      act="Capture"
    >
      <TextField
        {...field("amount", `Amount in ${currency}`, "amount", "amount_minor")}
        inputMode="decimal"
        hint={`${amountText(amount_minor, currency)} is authorized. A smaller capture ` +
          "releases the rest. Leave it empty to capture all of it."}
      />
    </FormDialog>
  );
}

export function RefundDialog({ payment, close }: AmountDialog) {
  const { id, currency, amount_refunding } = payment;
  const rest = refundable(payment);
  const { draft, change, field, kept } = useDraft({
    amount: plainMinor(rest, currency),
    reason: "",
    address: "",
    metadata: [] as MetadataRows,
  }, `refund ${id}`);

  const build = (options: RequestOptions) => {
    const { reason } = draft;
    const address = draft.address.trim();
    const input = {
      ...inputOf(draft, currency),
      ...(reason !== "" && { reason: reason as RefundReason }),
      ...(address !== "" && { destination: { address } }),
      ...metadataOf(draft),
    };
    return call("payments", "refund", id, input, options);
  };
  const held = amount_refunding > 0
    ? ` Pending refunds hold ${amountText(amount_refunding, currency)}.`
    : "";
  return (
    <FormDialog
      title="Refund"
      close={close}
      kept={kept}
      build={build}
      done={({ amount_minor, status }) => {
        const refunded = amountText(amount_minor, currency);
        return status === "pending"
          ? `The refund of ${refunded} is pending.`
          : `${refunded} refunded.`;
      }}
      act="Refund"
    >
      <TextField
        {...field("amount", `Amount in ${currency}`, "amount", "amount_minor")}
        inputMode="decimal"
        hint={`${amountText(rest, currency)} can be refunded.${held} ` +
          "Leave it empty to refund all of it."}
      />
      {RAILS[payment.method_kind].refund_to === "wallet" && (
        <TextField
          {...field("address", "The payer’s wallet", "destination", "destination.address")}
          hint="Ask the payer for it: the sender can be an exchange."
          optional={!isDeposit(payment)}
          mono
        />
      )}
      <SelectField
        {...field("reason", "Reason")}
        options={[["", "None"], ...optionsOf(REFUND_REASONS, label)]}
        optional
      />
      <MetadataFields draft={draft} change={change} />
    </FormDialog>
  );
}

/** Returns the amount as a member of the body. An empty text leaves it out. */
function inputOf({ amount }: { amount: string }, currency: string): { amount?: number } {
  return amount.trim() === "" ? {} : { amount: amountOf({ amount, currency }) };
}
