/** The decision that a payment waits for, with the buttons that make it. */

import { useState } from "preact/hooks";
import { isChallengeUrl } from "../../../shared/sandbox/challenge_url.ts";
import { advancesOf, isDeposit } from "../../../shared/domain/payments/lifecycle.ts";
import { MAX_PAGE } from "../../../shared/schema/limits.ts";
import type { Payment } from "../../../shared/schema/payment.ts";
import { useAction } from "../data/action.ts";
import { CaptureDialog } from "../forms/amount_dialogs.tsx";
import { Callout } from "../parts/callout.tsx";
import { call } from "../data/calls.ts";
import { DepositCallout } from "./deposit_callout.tsx";
import { useLive } from "../data/live.ts";
import { FailureNotice } from "../parts/notice.tsx";
import { Money, Time } from "../parts/text.tsx";

/** The decision. Renders nothing if the payment waits for none. */
export function PaymentCallout({ payment }: { payment: Payment }) {
  const { next_action } = payment;
  if (next_action && next_action.type !== "authenticate" && isDeposit(payment)) {
    return <DepositCallout payment={payment} action={next_action} />;
  }
  switch (payment.status) {
    case "requires_action":
      return <AuthenticationCallout payment={payment} />;
    case "authorized":
      return <CaptureCallout payment={payment} />;
    case "chargeback":
      return <DisputeCallout payment={payment} />;
    default:
      return null;
  }
}

/** The buttons that complete 3-D Secure for the payer. */
function AuthenticationCallout({ payment }: { payment: Payment }) {
  const { failure, running, run } = useAction();
  const then = payment.capture === "manual" ? "authorized" : "completed";
  const { next_action } = payment;
  const page = next_action?.type === "authenticate" && isChallengeUrl(next_action.url)
    ? next_action.url
    : null;
  const authenticate = (result: "success" | "failure") =>
    run(
      (options) => call("sandbox", "authenticate", payment.id, { result }, options),
      `Authenticated: the payment is ${then}.`,
    );
  return (
    <Callout title="3-D Secure is waiting">
      <p>
        The payer’s bank asks the payer to authenticate. In the sandbox you decide for the payer.
      </p>
      <div class="actions">
        <button
          type="button"
          class="primary"
          aria-disabled={running}
          onClick={() => authenticate("success")}
        >
          Authenticate
        </button>
        <button type="button" aria-disabled={running} onClick={() => authenticate("failure")}>
          Fail authentication
        </button>
        {page !== null && (
          <a class="button" href={page} target="_blank" rel="noreferrer">Open the payer’s page</a>
        )}
      </div>
      {failure && <FailureNotice failure={failure} />}
    </Callout>
  );
}

/** The button that captures an authorized payment. */
function CaptureCallout({ payment }: { payment: Payment }) {
  const [capturing, setCapturing] = useState(false);
  const { amount_minor, currency, capture_before } = payment;
  return (
    <Callout title="The payment waits for its capture">
      <p>
        The issuer holds <Money amount_minor={amount_minor} currency={currency} />{" "}
        on the card. Capture the amount, or a part of it, before{" "}
        {capture_before && <Time at={capture_before} />}. Otherwise the service cancels the payment.
      </p>
      <div class="actions">
        <button type="button" class="primary" onClick={() => setCapturing(true)}>Capture…</button>
      </div>
      {capturing && <CaptureDialog payment={payment} close={() => setCapturing(false)} />}
    </Callout>
  );
}

/** The button that decides a dispute for the merchant. Renders nothing if the dispute is lost. */
function DisputeCallout({ payment }: { payment: Payment }) {
  const { failure, running, run } = useAction();
  const [to] = advancesOf(payment);
  const { data } = useLive(call("disputes", "list", { payment_id: payment.id, limit: MAX_PAGE }));
  if (data?.data.some(({ status }) => status === "lost")) return null;
  return (
    <Callout title="The payer disputes the payment">
      <p>
        The payer’s bank has taken back{" "}
        <Money amount_minor={payment.amount_disputed} currency={payment.currency} />. If you win the
        dispute, the money comes back. In the sandbox you decide the dispute, here or by evidence.
      </p>
      <div class="actions">
        <button
          type="button"
          class="primary"
          aria-disabled={running}
          onClick={() =>
            run(
              (options) => call("sandbox", "advance", payment.id, { to: to! }, options),
              "Dispute won.",
            )}
        >
          Win the dispute
        </button>
      </div>
      {failure && <FailureNotice failure={failure} />}
    </Callout>
  );
}
