/** The bank's verification of a payee, and the decision that a payout waits for. */

import type { Refund, Transfer } from "../../../packages/client/mod.ts";
import { type CheckToApprove, needsApproval } from "../../../shared/domain/payments/lifecycle.ts";
import { ActionButton, useAction } from "./action.tsx";
import { call } from "../data/calls.ts";
import { Card } from "./page_parts.tsx";
import { may } from "../data/permissions.ts";
import type { Build } from "../data/retry_key.ts";
import { PAYEE_CHECK_WORDS, payeeCheckLabel } from "../data/words.ts";

type Payout = Pick<Transfer | Refund, "status" | "payee_check">;

/** Returns the bank's result with which a payout waits for approval; null: it does not wait. */
export function checkToApprove({ status, payee_check }: Payout): CheckToApprove | null {
  return status === "pending" && needsApproval(payee_check) ? payee_check : null;
}

/** The mark of a payout that waits for an approval. Renders nothing for any other one. */
export function PayeeMark({ of }: { of: Payout }) {
  const check = checkToApprove(of);
  return check && <span class="status warn">{payeeCheckLabel(check)}</span>;
}

/** The meaning of the result, and who decides. Renders nothing for any other payout. */
export function PayeeNote({ of }: { of: Payout }) {
  const check = checkToApprove(of);
  return check && (
    <p>
      {PAYEE_CHECK_WORDS[check]} The money leaves when an operator approves it.
      {may("sandbox.advanceTransfer") && " In the sandbox you decide for the operator."}
    </p>
  );
}

/** The buttons that decide about a transfer. Renders nothing if it waits for no approval. */
export function PayeeCallout({ transfer }: { transfer: Transfer }) {
  const action = useAction();
  const check = checkToApprove(transfer);
  if (check === null) return null;
  const decide = (to: "completed" | "failed"): Build<unknown> => (options) =>
    call("sandbox", "advanceTransfer", transfer.id, { to }, options);
  return (
    <Card class="callout" title={payeeCheckLabel(check)}>
      <PayeeNote of={transfer} />
      <div class="actions">
        <ActionButton
          of={action}
          class="primary"
          build={decide("completed")}
          done="Transfer approved."
        >
          Approve
        </ActionButton>
        <ActionButton of={action} build={decide("failed")} done="Transfer rejected.">
          Reject
        </ActionButton>
      </div>
      {action.notice}
    </Card>
  );
}
