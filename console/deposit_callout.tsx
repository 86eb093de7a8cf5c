/** The address to which the payer sends a payment by stablecoin, and a form that sends for them. */

import { useState } from "preact/hooks";
import { type Deposit, missingAmount } from "../shared/domain/payments/lifecycle.ts";
import type { NextAction, Payment } from "../shared/schema/payment.ts";
import { Callout } from "./callout.tsx";
import { call } from "./calls.ts";
import { FieldError } from "./failure.ts";
import { showFlash } from "./flash.tsx";
import { Form, TextField } from "./form.tsx";
import { formatMinor, parseAmount, plainMinor } from "./money.ts";
import { QrCode } from "./qr_code.tsx";
import { Fact, Facts, Id, Money, Time } from "./text.tsx";
import { ARRIVING_STATUS } from "./words.ts";

type SendAction = Extract<NextAction, { type: "send_stablecoin" }>;

/** The QR code of the payment with its address, and the transfer that the sandbox simulates. */
export function DepositCallout(
  { payment, action }: { payment: Payment & Deposit; action: SendAction },
) {
  const { currency, amount_received } = payment;
  const missing = missingAmount(payment);
  // The link of the API asks for the whole amount, also after a part.
  const uri = action.uri.replace(/uint256=\d+/, `uint256=${missing}`);
  return (
    <Callout
      title={missing > 0 ? "Waiting for the payer" : "Waiting until the transfers are final"}
    >
      <div class="deposit">
        {missing > 0 && <QrCode text={uri} label={`QR code of ${uri}`} />}
        <div>
          <Facts>
            <Fact name="Missing">
              <Money amount_minor={missing} currency={currency} />
            </Fact>
            {amount_received > 0 && (
              <Fact name="Received">
                <Money amount_minor={amount_received} currency={currency} />
              </Fact>
            )}
            <Fact name="Network">{action.network}</Fact>
            <Fact name="Address">
              <Id id={action.address} />
            </Fact>
            <Fact name="Expires">
              <Time at={action.expires_at} />
            </Fact>
          </Facts>
          <p class="quiet">
            Scan the QR code with a wallet to pay. In the sandbox nobody has the key of the address,
            so send no money to it.
          </p>
        </div>
      </div>
      <SendForm payment={payment} missing={missing} />
    </Callout>
  );
}

/** Simulates a transfer that a block has. */
function SendForm({ payment, missing }: { payment: Payment; missing: number }) {
  const { id, currency } = payment;
  const [typed, setTyped] = useState<string | null>(null);
  const amount = typed ?? (missing > 0 ? plainMinor(missing, currency) : "");
  return (
    <Form
      label="Simulate a transfer"
      build={(idempotencyKey) => {
        const amount_received = amountOf(amount, currency);
        return call("sandbox", "advance", id, { to: ARRIVING_STATUS, amount_received }, {
          idempotencyKey,
        });
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
        hint="Several transfers add up. Advance the payment to make them final or undo them."
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
