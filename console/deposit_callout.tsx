/** The address to which the payer sends a payment by stablecoin, and what the payer sends there. */

import { type Deposit, missingAmount } from "../shared/domain/payments/lifecycle.ts";
import type { NextAction, Payment } from "../shared/schema/payment.ts";
import { Callout } from "./callout.tsx";
import { QrCode } from "./qr_code.tsx";
import { SendForm } from "./send_form.tsx";
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
      <SendForm
        payment={payment}
        to={ARRIVING_STATUS}
        missing={missing}
        hint="Several transfers add up. Advance the payment to make them final or undo them."
      />
    </Callout>
  );
}

/** The card that simulates a transfer to the address of a payment that is over. */
export function LateMoney({ payment }: { payment: Payment & Deposit }) {
  return (
    <section class="card" aria-labelledby="late">
      <h2 id="late">Late money</h2>
      <SendForm
        payment={payment}
        to={payment.status}
        missing={0}
        hint="The payer can still send money to the address. It becomes a part of the unapplied balance."
      />
    </section>
  );
}
