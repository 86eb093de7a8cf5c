/** The account or address to which the payer sends a payment, and what the payer sends there. */

import { useState } from "preact/hooks";
import { epcQr } from "../../../shared/core/epc_qr.ts";
import {
  type Deposit,
  missingAmount,
  settlesAtOnce,
} from "../../../shared/domain/payments/lifecycle.ts";
import type { NextAction, Payment } from "../../../shared/schema/payment.ts";
import type { PaymentStatus } from "../../../shared/schema/statuses.ts";
import { call } from "../data/calls.ts";
import { Card } from "../parts/page_parts.tsx";
import { amountOf } from "../forms/create_body.ts";
import { TextField } from "../parts/fields.tsx";
import { showFlash } from "../data/flash.ts";
import { Form } from "../parts/form.tsx";
import { QrCode } from "../parts/qr_code.tsx";
import { amountText, plainMinor } from "../data/money.ts";
import { may } from "../data/permissions.ts";
import { Fact, Id, Money } from "../parts/text.tsx";
import { ARRIVING_STATUS } from "../data/words.ts";

type SendAction = Exclude<NextAction, { type: "authenticate" }>;

/** The QR code of a payment that the payer sends, and the transfer that the sandbox simulates. */
export function DepositCallout(
  { payment, action }: { payment: Payment & Deposit; action: SendAction },
) {
  const { currency, amount_received } = payment;
  const missing = missingAmount(payment);
  const at_once = settlesAtOnce(payment);
  const { copied, other, note, qr } = placeOf(action, missing);
  const code = missing > 0 ? qr : null;
  return (
    <Card
      class="callout"
      title={missing > 0 ? "Waiting for the payer" : "Waiting until the transfers are final"}
    >
      <div class="deposit">
        {code !== null && <QrCode text={code} label={`QR code of ${code}`} />}
        <div>
          <dl class="facts">
            <Fact name="Missing">
              <Money amount_minor={missing} currency={currency} />
            </Fact>
            {amount_received > 0 && (
              <Fact name="Received">
                <Money amount_minor={amount_received} currency={currency} />
              </Fact>
            )}
            {copied.map(([name, id]) => (
              <Fact key={name} name={name}>
                <Id id={id} />
              </Fact>
            ))}
            <Fact name={other[0]}>{other[1]}</Fact>
            <Fact name="Expires" at={action.expires_at} />
          </dl>
          <p class="quiet">{note}</p>
        </div>
      </div>
      {may("sandbox.advance") && (
        <SendForm
          payment={payment}
          to={at_once ? payment.status : ARRIVING_STATUS}
          missing={missing}
          hint={at_once
            ? "Several transfers add up. The payment completes when the amount has come."
            : "Several transfers add up. Advance the payment to make them final or undo them."}
        />
      )}
    </Card>
  );
}

interface Place {
  copied: [name: string, text: string][];
  other: [name: string, text: string];
  note: string;
  /** The text of the QR code. That of the API asks for the whole amount, also after a part. */
  qr: string | null;
}

function placeOf(action: SendAction, missing: number): Place {
  switch (action.type) {
    case "bank_transfer":
      return {
        copied: [["Reference", action.reference], ["IBAN", action.iban], ["BIC", action.bic]],
        other: ["Account holder", action.holder_name],
        note: "The payer must give the reference. Banking apps read the QR code of a payment in " +
          "EUR. In the sandbox no bank has the account.",
        qr: epcQr({ ...action, amount_minor: missing }),
      };
    case "send_stablecoin":
      return {
        copied: [["Address", action.address]],
        other: ["Network", action.network],
        note: "In the sandbox the QR code asks a wallet for test tokens on Sepolia, the test " +
          "network of Ethereum. Nobody has the key of the address, so send no money to it.",
        qr: action.uri.replace(/uint256=\d+/, `uint256=${missing}`),
      };
    default:
      return action satisfies never;
  }
}

/** The card that simulates a transfer to a payment that is over. */
export function LateMoney({ payment }: { payment: Payment & Deposit }) {
  if (!may("sandbox.advance")) return null;
  return (
    <Card title="Late money">
      <SendForm
        payment={payment}
        to={payment.status}
        missing={0}
        hint="The payer can still send money. It becomes a part of the unapplied balance."
      />
    </Card>
  );
}

/** The fields. The default amount is the missing one; 0: there is no default. */
function SendForm({ payment, to, missing, hint }: {
  payment: Payment;
  to: PaymentStatus;
  missing: number;
  hint: string;
}) {
  const { id, currency } = payment;
  const [typed, setTyped] = useState<string | null>(null);
  const amount = typed ?? (missing > 0 ? plainMinor(missing, currency) : "");
  const amount_received = () => amountOf({ amount, currency }, "amount_received");
  return (
    <Form
      label="Simulate a transfer"
      build={(options) => {
        const body = { to, amount_received: amount_received() };
        return call("sandbox", "advance", id, body, options);
      }}
      done={() => {
        setTyped(null);
        showFlash(`${amountText(amount_received(), currency)} sent.`);
      }}
      act="Simulate the transfer"
      acting="Sending…"
      act_class=""
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
