/** The account or address to which the payer sends a payment, and what the payer sends there. */

import { epcQr } from "../../../shared/core/epc_qr.ts";
import { type Deposit, missingAmount } from "../../../shared/domain/payments/lifecycle.ts";
import type { NextAction, Payment } from "../../../shared/schema/payment.ts";
import { Callout } from "../parts/callout.tsx";
import { QrCode } from "../parts/qr_code.tsx";
import { SendForm } from "../forms/send_form.tsx";
import { Fact, Facts, Id, Money, Time } from "../parts/text.tsx";
import { ARRIVING_STATUS } from "../data/words.ts";

type SendAction = Exclude<NextAction, { type: "authenticate" }>;

/** The QR code of a payment that the payer sends, and the transfer that the sandbox simulates. */
export function DepositCallout(
  { payment, action }: { payment: Payment & Deposit; action: SendAction },
) {
  const { currency, amount_received } = payment;
  const missing = missingAmount(payment);
  const is_bank = action.type === "bank_transfer";
  const code = missing > 0 ? codeOf(action, missing) : null;
  return (
    <Callout
      title={missing > 0 ? "Waiting for the payer" : "Waiting until the transfers are final"}
    >
      <div class="deposit">
        {code !== null && <QrCode text={code} label={`QR code of ${code}`} />}
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
            {is_bank
              ? (
                <>
                  <Fact name="Reference">
                    <Id id={action.reference} />
                  </Fact>
                  <Fact name="IBAN">
                    <Id id={action.iban} />
                  </Fact>
                  <Fact name="BIC">
                    <Id id={action.bic} />
                  </Fact>
                  <Fact name="Account holder">{action.holder_name}</Fact>
                </>
              )
              : (
                <>
                  <Fact name="Network">{action.network}</Fact>
                  <Fact name="Address">
                    <Id id={action.address} />
                  </Fact>
                </>
              )}
            <Fact name="Expires">
              <Time at={action.expires_at} />
            </Fact>
          </Facts>
          <p class="quiet">{is_bank ? BANK_NOTE : CHAIN_NOTE}</p>
        </div>
      </div>
      <SendForm
        payment={payment}
        to={is_bank ? payment.status : ARRIVING_STATUS}
        missing={missing}
        hint={is_bank
          ? "Several transfers add up. The payment completes when the amount has come."
          : "Several transfers add up. Advance the payment to make them final or undo them."}
      />
    </Callout>
  );
}

const BANK_NOTE = "The payer must give the reference. Banking apps read the QR code of a payment " +
  "in EUR. In the sandbox no bank has the account.";
const CHAIN_NOTE =
  "In the sandbox the QR code asks a wallet for test tokens on Sepolia, the test " +
  "network of Ethereum. Nobody has the key of the address, so send no money to it.";

/** Returns the text of the QR code. That of the API asks for the whole amount, also after a part. */
function codeOf(action: SendAction, missing: number): string | null {
  return action.type === "bank_transfer"
    ? epcQr({ ...action, amount_minor: missing })
    : action.uri.replace(/uint256=\d+/, `uint256=${missing}`);
}

/** The card that simulates a transfer to a payment that is over. */
export function LateMoney({ payment }: { payment: Payment & Deposit }) {
  return (
    <section class="card" aria-labelledby="late">
      <h2 id="late">Late money</h2>
      <SendForm
        payment={payment}
        to={payment.status}
        missing={0}
        hint="The payer can still send money. It becomes a part of the unapplied balance."
      />
    </section>
  );
}
