/** The dialogs that capture or refund an amount of a payment. */

import { useState } from "preact/hooks";
import type { RefundReason, RequestOptions } from "../../../packages/client/mod.ts";
import { REFUND_REASONS } from "../../../shared/core/vocabulary.ts";
import { isDeposit, refundable } from "../../../shared/domain/payments/lifecycle.ts";
import type { Payment } from "../../../shared/schema/payment.ts";
import { call } from "../data/calls.ts";
import { metadataOf } from "./create_body.ts";
import { Dialog } from "../parts/dialog.tsx";
import { FieldError } from "../data/failure.ts";
import { showFlash } from "../data/flash.ts";
import { SelectField, TextField } from "../parts/fields.tsx";
import { Form } from "../parts/form.tsx";
import { MetadataFields, type MetadataRows } from "./metadata_fields.tsx";
import { formatMinor, parseAmount, plainMinor } from "../data/money.ts";
import { label } from "../data/words.ts";

/** The choices for the reason of a refund. The reason is optional. */
const REASONS: readonly (readonly [RefundReason | "", string])[] = [
  ["", "None"],
  ...REFUND_REASONS.map((reason) => [reason, label(reason)] as const),
];

/** The dialog that captures an authorized payment, the whole amount or less. */
export function CaptureDialog({ payment, close }: { payment: Payment; close: () => void }) {
  const { id, amount_minor, currency } = payment;
  const [amount, setAmount] = useState(plainMinor(amount_minor, currency));
  return (
    <Dialog title="Capture" close={close}>
      <Form
        build={(options) => call("payments", "capture", id, amountOf(amount, currency), options)}
        done={({ amount_captured }) => {
          close();
          showFlash(`${textOf(amount_captured, currency)} captured.`);
        }}
        actions={(sending) => (
          <>
            <button type="submit" class="primary" aria-disabled={sending}>
              {sending ? "Capturing…" : "Capture"}
            </button>
            <button type="button" onClick={close}>Cancel</button>
          </>
        )}
      >
        <AmountField
          currency={currency}
          value={amount}
          set={setAmount}
          hint={`${textOf(amount_minor, currency)} is authorized. A smaller capture ` +
            "releases the rest. Leave it empty to capture all of it."}
        />
      </Form>
    </Dialog>
  );
}

/** The dialog that refunds a payment, a part or the rest of it. */
export function RefundDialog({ payment, close }: { payment: Payment; close: () => void }) {
  const { id, currency, amount_refunding } = payment;
  const rest = refundable(payment);
  const [amount, setAmount] = useState(plainMinor(rest, currency));
  const [reason, setReason] = useState<string>("");
  const [address, setAddress] = useState("");
  const [metadata, setMetadata] = useState<MetadataRows>([]);

  const build = (options: RequestOptions) => {
    const input = {
      ...amountOf(amount, currency),
      ...(reason !== "" && { reason: reason as RefundReason }),
      ...(address.trim() !== "" && { destination: { address: address.trim() } }),
      ...metadataOf({ metadata }),
    };
    return call("payments", "refund", id, input, options);
  };
  const held = amount_refunding > 0
    ? ` Pending refunds hold ${textOf(amount_refunding, currency)}.`
    : "";
  return (
    <Dialog title="Refund" close={close}>
      <Form
        build={build}
        done={({ amount_minor, status }) => {
          close();
          const refunded = textOf(amount_minor, currency);
          showFlash(
            status === "pending"
              ? `The refund of ${refunded} is pending.`
              : `${refunded} refunded.`,
          );
        }}
        actions={(sending) => (
          <>
            <button type="submit" class="primary" aria-disabled={sending}>
              {sending ? "Refunding…" : "Refund"}
            </button>
            <button type="button" onClick={close}>Cancel</button>
          </>
        )}
      >
        <AmountField
          currency={currency}
          value={amount}
          set={setAmount}
          hint={`${textOf(rest, currency)} can be refunded.${held} ` +
            "Leave it empty to refund all of it."}
        />
        {payment.method_kind === "stablecoin" && (
          <TextField
            label="The payer’s wallet"
            params={["destination", "destination.address"]}
            value={address}
            set={setAddress}
            hint="Ask the payer for it: the sender can be an exchange."
            optional={!isDeposit(payment)}
            mono
          />
        )}
        <SelectField
          label="Reason"
          params={["reason"]}
          value={reason}
          set={setReason}
          options={REASONS}
          optional
        />
        <MetadataFields rows={metadata} set={setMetadata} />
      </Form>
    </Dialog>
  );
}

function AmountField(props: {
  currency: string;
  value: string;
  set: (value: string) => void;
  hint: string;
}) {
  return (
    <TextField
      label={`Amount in ${props.currency}`}
      params={["amount", "amount_minor"]}
      value={props.value}
      set={props.set}
      inputMode="decimal"
      hint={props.hint}
    />
  );
}

function textOf(amount_minor: number, currency: string): string {
  return `${formatMinor(amount_minor, currency)} ${currency}`;
}

/** Returns the amount as a member of the body. An empty text leaves it out. */
function amountOf(text: string, currency: string): { amount?: number } {
  if (text.trim() === "") return {};
  try {
    return { amount: parseAmount(text, currency) };
  } catch (error) {
    throw new FieldError("amount", (error as Error).message);
  }
}
