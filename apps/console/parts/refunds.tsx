/** The refunds of a payment, with the buttons that decide a pending one. */

import type { Refund } from "../../../packages/client/mod.ts";
import { MAX_PAGE } from "../../../shared/schema/limits.ts";
import { type Action, ActionButton, useAction } from "./action.tsx";
import { call } from "../data/calls.ts";
import { useLive } from "../data/live.ts";
import { amountText } from "../data/money.ts";
import { ReadingList } from "./notice.tsx";
import { checkToApprove, PayeeMark, PayeeNote } from "./payee_check.tsx";
import { Id, MetadataFacts, Money, Status, Time } from "./text.tsx";

/** The refunds, newest first. */
export function Refunds({ payment_id }: { payment_id: string }) {
  const live = useLive(call("payments", "listRefunds", payment_id, { limit: MAX_PAGE }));
  const action = useAction();
  return (
    <ReadingList label="refunds" live={live} rows={1} none="No refunds">
      {(refunds) => (
        <>
          <ul class="records" aria-label="Refunds">
            {refunds.map((refund) => (
              <RefundItem
                key={refund.id}
                refund={refund}
                action={action}
              />
            ))}
          </ul>
          {action.notice}
        </>
      )}
    </ReadingList>
  );
}

function RefundItem({ refund, action }: { refund: Refund; action: Action }) {
  const { id, status, amount_minor, currency, reason, failure_code, return_code } = refund;
  return (
    <li>
      <div class="record">
        <Status of={status} />
        <Money class="strong" amount_minor={amount_minor} currency={currency} />
        <PayeeMark of={refund} />
        {reason && <span class="quiet">{reason.replaceAll("_", " ")}</span>}
        {failure_code && <code>{failure_code}</code>}
        {return_code && <code>{return_code}</code>}
        {status === "pending" && <Decision refund={refund} action={action} />}
      </div>
      <PayeeNote of={refund} />
      <div class="record-line">
        <Id id={id} />
        <Time at={refund.created_at} />
      </div>
      <dl class="facts">
        <MetadataFacts of={refund.metadata} />
      </dl>
    </li>
  );
}

/** The buttons that decide a pending refund, as the provider or the operator would. */
function Decision({ refund, action }: { refund: Refund; action: Action }) {
  const { id, amount_minor, currency } = refund;
  const needs_approval = checkToApprove(refund) !== null;
  const decisions = [
    ["completed", needs_approval ? "Approve" : "Complete", "Refund completed."],
    [
      "failed",
      needs_approval ? "Reject" : "Fail",
      "Refund failed: its amount can be refunded again.",
    ],
  ] as const;
  return (
    <div class="record-buttons">
      {decisions.map(([to, text, done]) => (
        <ActionButton
          key={to}
          of={action}
          class="small"
          label={`${text} the refund of ${amountText(amount_minor, currency)}`}
          build={(options) => call("sandbox", "advanceRefund", id, { to }, options)}
          done={done}
        >
          {text}
        </ActionButton>
      ))}
    </div>
  );
}
