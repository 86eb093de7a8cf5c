/** The form that simulates a transfer of the payer. */

import { useState } from "preact/hooks";
import type { Payment, PaymentStatus } from "../../../shared/schema/payment.ts";
import { call } from "../data/calls.ts";
import { FieldError } from "../data/failure.ts";
import { showFlash } from "../data/flash.ts";
import { TextField } from "../parts/fields.tsx";
import { Form } from "../parts/form.tsx";
import { formatMinor, parseAmount, plainMinor } from "../data/money.ts";

/** The fields. The default amount is the missing one; 0: there is no default. */
export function SendForm({ payment, to, missing, hint }: {
  payment: Payment;
  /** The status that the transfer gives the payment. */
  to: PaymentStatus;
  missing: number;
  hint: string;
}) {
  const { id, currency } = payment;
  const [typed, setTyped] = useState<string | null>(null);
  const amount = typed ?? (missing > 0 ? plainMinor(missing, currency) : "");
  return (
    <Form
      label="Simulate a transfer"
      build={(options) => {
        const amount_received = amountOf(amount, currency);
        return call("sandbox", "advance", id, { to, amount_received }, options);
      }}
      done={() => {
        setTyped(null);
        showFlash(`${formatMinor(amountOf(amount, currency), currency)} ${currency} sent.`);
      }}
      actions={(sending) => (
        <button type="submit" aria-disabled={sending}>
          {sending ? "Sending…" : "Simulate the transfer"}
        </button>
      )}
    >
      <TextField
        label={`Amount in ${currency}`}
        params={["amount_received"]}
        value={amount}
        set={setTyped}
        inputMode="decimal"
        hint={hint}
      />
    </Form>
  );
}

function amountOf(text: string, currency: string): number {
  try {
    return parseAmount(text, currency);
  } catch (error) {
    throw new FieldError("amount_received", (error as Error).message);
  }
}
