/** The refunds of a payment, with the buttons that decide a pending one. */

import type { Refund } from "../../../packages/client/mod.ts";
import { MAX_PAGE } from "../../../shared/schema/limits.ts";
import { useAction } from "../data/action.ts";
import { call } from "../data/calls.ts";
import { useLive } from "../data/live.ts";
import { formatMinor } from "../data/money.ts";
import { Cut, Empty, FailureNotice, Reading } from "./notice.tsx";
import { checkToApprove, PayeeMark, PayeeNote } from "./payee_check.tsx";
import { Id, Money, Status, Time } from "./text.tsx";

/** The refunds, newest first. */
export function Refunds({ payment_id }: { payment_id: string }) {
  const live = useLive(call("payments", "listRefunds", payment_id, { limit: MAX_PAGE }));
  return (
    <>
      <Reading label="refunds" live={live} rows={1}>
        {({ data }) =>
          data.length === 0 ? <Empty title="No refunds" /> : <RefundList refunds={data} />}
      </Reading>
      {live.data && <Cut page={live.data} />}
    </>
  );
}

function RefundList({ refunds }: { refunds: readonly Refund[] }) {
  const { failure, running, run } = useAction();
  return (
    <>
      <ul class="records" aria-label="Refunds">
        {refunds.map((refund) => (
          <li key={refund.id}>
            <div class="record">
              <Status of={refund.status} />
              <Money
                class="strong"
                amount_minor={refund.amount_minor}
                currency={refund.currency}
              />
              <PayeeMark of={refund} />
              {refund.reason && <span class="quiet">{refund.reason.replaceAll("_", " ")}</span>}
              {refund.failure_code && <code>{refund.failure_code}</code>}
              {refund.return_code && <code>{refund.return_code}</code>}
              {refund.status === "pending" && (
                <Decision refund={refund} running={running} run={run} />
              )}
            </div>
            <PayeeNote of={refund} />
            <div class="record-line">
              <Id id={refund.id} />
              <Time at={refund.created_at} />
            </div>
            {Object.entries(refund.metadata).map(([name, value]) => (
              <p key={name} class="record-line">
                <span>metadata.{name}</span>
                <span>{value}</span>
              </p>
            ))}
          </li>
        ))}
      </ul>
      {failure && <FailureNotice failure={failure} />}
    </>
  );
}

/** The buttons that decide a pending refund, as the provider or the operator would. */
function Decision(
  props: { refund: Refund } & Pick<ReturnType<typeof useAction>, "running" | "run">,
) {
  const { refund, running, run } = props;
  const { id, amount_minor, currency } = refund;
  const [complete, fail] = checkToApprove(refund) ? ["Approve", "Reject"] : ["Complete", "Fail"];
  const name = `the refund of ${formatMinor(amount_minor, currency)} ${currency}`;
  return (
    <div class="record-buttons">
      <button
        type="button"
        class="small"
        aria-label={`${complete} ${name}`}
        aria-disabled={running}
        onClick={() =>
          run(
            (options) => call("sandbox", "advanceRefund", id, { to: "completed" }, options),
            "Refund completed.",
          )}
      >
        {complete}
      </button>
      <button
        type="button"
        class="small"
        aria-label={`${fail} ${name}`}
        aria-disabled={running}
        onClick={() =>
          run(
            (options) => call("sandbox", "advanceRefund", id, { to: "failed" }, options),
            "Refund failed: its amount can be refunded again.",
          )}
      >
        {fail}
      </button>
    </div>
  );
}
