/** The decision that a payment waits for, with the buttons that make it. */

import type { ComponentType } from "preact";
import { isChallengeUrl } from "../../../shared/sandbox/challenge_url.ts";
import { advancesOf, isDeposit } from "../../../shared/domain/payments/lifecycle.ts";
import { STATUSES, type WaitsFor } from "../../../shared/domain/payment_statuses.ts";
import { MAX_PAGE } from "../../../shared/schema/limits.ts";
import type { Payment } from "../../../shared/schema/payment.ts";
import { ActionButton, useAction } from "../parts/action.tsx";
import { CaptureDialog } from "../forms/amount_dialogs.tsx";
import { call } from "../data/calls.ts";
import { Card } from "../parts/page_parts.tsx";
import { DepositCallout } from "./deposit_callout.tsx";
import { DialogButton } from "../parts/dialog.tsx";
import { useLive } from "../data/live.ts";
import { may } from "../data/permissions.ts";
import type { Build } from "../data/retry_key.ts";
import { Money, Time } from "../parts/text.tsx";

/** The decision. Renders nothing if the payment waits for none. */
export function PaymentCallout({ payment }: { payment: Payment }) {
  const { next_action } = payment;
  if (next_action && next_action.type !== "authenticate" && isDeposit(payment)) {
    return <DepositCallout payment={payment} action={next_action} />;
  }
  const { waits_for } = STATUSES[payment.status];
  const Callout = waits_for && CALLOUTS[waits_for];
  return Callout && <Callout payment={payment} />;
}

/** The decision for which a payment waits. Only the payer and the provider decide the others. */
const CALLOUTS: Record<WaitsFor, ComponentType<{ payment: Payment }> | null> = {
  money: null,
  authentication: AuthenticationCallout,
  result: null,
  capture: CaptureCallout,
  evidence: DisputeCallout,
};

/** The buttons that complete 3-D Secure for the payer. */
function AuthenticationCallout({ payment }: { payment: Payment }) {
  const action = useAction();
  const { id, capture, next_action } = payment;
  const done = `Authenticated: the payment is ${
    capture === "manual" ? "authorized" : "completed"
  }.`;
  const authenticate = (result: "success" | "failure"): Build<unknown> => (options) =>
    call("sandbox", "authenticate", id, { result }, options);
  return (
    <Card class="callout" title="3-D Secure is waiting">
      <p>
        The payer’s bank asks the payer to authenticate.
        {may("sandbox.authenticate") && " In the sandbox you decide for the payer."}
      </p>
      <div class="actions">
        <ActionButton of={action} class="primary" build={authenticate("success")} done={done}>
          Authenticate
        </ActionButton>
        <ActionButton of={action} build={authenticate("failure")} done={done}>
          Fail authentication
        </ActionButton>
        {next_action?.type === "authenticate" && isChallengeUrl(next_action.url) && (
          <a class="button" href={next_action.url} target="_blank" rel="noreferrer">
            Open the payer’s page
          </a>
        )}
      </div>
      {action.notice}
    </Card>
  );
}

function CaptureCallout({ payment }: { payment: Payment }) {
  const { amount_minor, currency, capture_before } = payment;
  return (
    <Card class="callout" title="The payment waits for its capture">
      <p>
        The issuer holds <Money amount_minor={amount_minor} currency={currency} />{" "}
        on the card. Capture the amount, or a part of it, before{" "}
        {capture_before && <Time at={capture_before} />}. Otherwise the service cancels the payment.
      </p>
      <div class="actions">
        <DialogButton text="Capture…" needs="payments.capture" class="primary">
          {(close) => <CaptureDialog payment={payment} close={close} />}
        </DialogButton>
      </div>
    </Card>
  );
}

/** The button that decides a dispute for the merchant. Renders nothing if the dispute is lost. */
function DisputeCallout({ payment }: { payment: Payment }) {
  const action = useAction();
  const [to] = advancesOf(payment);
  const { data } = useLive(call("disputes", "list", { payment_id: payment.id, limit: MAX_PAGE }));
  if (data?.data.some(({ status }) => status === "lost")) return null;
  return (
    <Card class="callout" title="The payer disputes the payment">
      <p>
        The payer’s bank has taken back{" "}
        <Money amount_minor={payment.amount_disputed} currency={payment.currency} />. If you win the
        dispute, the money comes back.
        {may("sandbox.advance") && " In the sandbox you decide the dispute, here or by evidence."}
      </p>
      <div class="actions">
        <ActionButton
          of={action}
          class="primary"
          build={(options) => call("sandbox", "advance", payment.id, { to: to! }, options)}
          done="Dispute won."
        >
          Win the dispute
        </ActionButton>
      </div>
      {action.notice}
    </Card>
  );
}
