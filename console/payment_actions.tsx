/** The actions on a payment. The lifecycle rules of the service decide which of them it shows. */

import { useState } from "preact/hooks";
import { ApiError, type Payment, type RefundReason } from "../client/mod.ts";
import { REFUND_REASONS } from "../shared/core/vocabulary.ts";
import {
  advancesOf,
  isCancellable,
  isRefundable,
  refundable,
} from "../shared/domain/payments/lifecycle.ts";
import { type Call, call, change } from "./calls.ts";
import { Dialog } from "./dialog.tsx";
import { type Failure, failureOf, FieldError } from "./failure.ts";
import { clearFlash, showDecline, showFlash } from "./flash.tsx";
import { Form, SelectField, TextField } from "./form.tsx";
import { formatMinor, parseAmount, plainMinor } from "./money.ts";
import { FailureNotice } from "./notice.tsx";
import { advanceText, label } from "./words.ts";

/** The choices for the reason of a refund. The reason is optional. */
const REASONS: readonly (readonly [RefundReason | "", string])[] = [
  ["", "None"],
  ...REFUND_REASONS.map((reason) => [reason, label(reason)] as const),
];

/** Runs the actions of buttons, one at a time, and keeps the failure of the last one. */
function useAction() {
  const [failure, setFailure] = useState<Failure | null>(null);
  const [running, setRunning] = useState(false);
  const run = async (described: Call<unknown>, done_text: string) => {
    if (running) return;
    setRunning(true);
    setFailure(null);
    clearFlash();
    try {
      await change(described);
      showFlash(done_text);
    } catch (error) {
      if (error instanceof ApiError && error.payment) showDecline(error);
      else setFailure(failureOf(error));
    } finally {
      setRunning(false);
    }
  };
  return { failure, running, run };
}

/** The buttons to refund and to cancel, if the status allows it. */
export function PaymentActions({ payment }: { payment: Payment }) {
  const [refunding, setRefunding] = useState(false);
  const { failure, running, run } = useAction();
  return (
    <div class="title-actions">
      {isCancellable(payment) && (
        <button
          type="button"
          aria-disabled={running}
          onClick={() => run(call("payments", "cancel", payment.id), "Payment cancelled.")}
        >
          Cancel payment
        </button>
      )}
      {isRefundable(payment) && (
        <button
          type="button"
          class="primary"
          onClick={() => setRefunding(true)}
        >
          Refund…
        </button>
      )}
      {failure && <FailureNotice failure={failure} />}
      {refunding && <RefundDialog payment={payment} close={() => setRefunding(false)} />}
    </div>
  );
}

/** The buttons that answer 3-D Secure for the payer. */
export function AuthenticationCall({ payment }: { payment: Payment }) {
  const { failure, running, run } = useAction();
  const answer = (result: "success" | "failure") =>
    run(
      call("sandbox", "authenticate", payment.id, { result }),
      "Authenticated: the payment is completed.",
    );
  return (
    <section class="card callout" aria-labelledby="authentication">
      <h2 id="authentication">3-D Secure is waiting</h2>
      <p>
        The payer’s bank asks the payer to authenticate. In the sandbox you answer for the payer.
      </p>
      <div class="actions">
        <button
          type="button"
          class="primary"
          aria-disabled={running}
          onClick={() => answer("success")}
        >
          Authenticate
        </button>
        <button type="button" aria-disabled={running} onClick={() => answer("failure")}>
          Fail authentication
        </button>
      </div>
      {failure && <FailureNotice failure={failure} />}
    </section>
  );
}

/** The buttons that advance the payment to another status. */
export function Moves({ payment }: { payment: Payment }) {
  const { failure, running, run } = useAction();
  const moves = advancesOf(payment);
  return (
    <section class="card" aria-labelledby="moves">
      <h2 id="moves">Advance</h2>
      {moves.length === 0
        ? (
          <p class="quiet">
            {label(payment.status)} is final: no other status can follow.
          </p>
        )
        : (
          <ul class="moves">
            {moves.map((to) => (
              <li key={to}>
                <button
                  type="button"
                  aria-disabled={running}
                  onClick={() =>
                    run(
                      call("sandbox", "advance", payment.id, { to }),
                      `Advanced to ${label(to).toLowerCase()}.`,
                    )}
                >
                  <span>{label(to)}</span>
                  <span class="quiet">{advanceText(to)}</span>
                </button>
              </li>
            ))}
          </ul>
        )}
      {failure && <FailureNotice failure={failure} />}
    </section>
  );
}

function RefundDialog({ payment, close }: { payment: Payment; close: () => void }) {
  const { currency } = payment;
  const rest = refundable(payment);
  const [amount, setAmount] = useState(plainMinor(rest, currency));
  const [reason, setReason] = useState<string>("");

  const build = (idempotencyKey: string) => {
    const input = {
      ...(amount.trim() !== "" && { amount: amountOf(amount, currency) }),
      ...(reason !== "" && { reason: reason as RefundReason }),
    };
    return call("payments", "refund", payment.id, input, { idempotencyKey });
  };
  return (
    <Dialog title="Refund" close={close}>
      <Form
        label="Refund"
        build={build}
        done={(refund) => {
          close();
          showFlash(`${formatMinor(refund.amount_minor, currency)} ${currency} refunded.`);
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
        <TextField
          label={`Amount in ${currency}`}
          params={["amount", "amount_minor"]}
          value={amount}
          set={setAmount}
          inputMode="decimal"
          hint={`${
            formatMinor(rest, currency)
          } ${currency} can be refunded. Leave it empty to refund all of it.`}
        />
        <SelectField
          label="Reason"
          params={["reason"]}
          value={reason}
          set={setReason}
          options={REASONS}
          optional
        />
      </Form>
    </Dialog>
  );
}

function amountOf(text: string, currency: string): number {
  try {
    return parseAmount(text, currency);
  } catch (error) {
    throw new FieldError("amount", (error as Error).message);
  }
}
