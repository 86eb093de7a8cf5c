/** The charts of payments over time: their outcomes, and the volume of a currency. */

import { useState } from "preact/hooks";
import { MAX_PAGE } from "../../../shared/schema/limits.ts";
import { BarChart, type Series } from "./bar_chart.tsx";
import { call } from "../data/calls.ts";
import { Choices } from "./fields.tsx";
import { useLive, useNewest } from "../data/live.ts";
import { formatMinor } from "../data/money.ts";
import { Empty, Reading } from "./notice.tsx";
import {
  barsOf,
  beginOf,
  currenciesOf,
  outcomeOf,
  OUTCOMES,
  type Span,
  SPANS,
} from "../data/payment_history.ts";
import { go, href } from "../data/route.ts";

/** Milliseconds between two reads of the clock. */
const EVERY_MS = 5_000;
const TONES = ["good", "wait", "bad", "warn"] as const;
const OUTCOME_SERIES: readonly Series[] = OUTCOMES.map((name, n) => ({ name, tone: TONES[n]! }));
const VOLUME_SERIES: readonly Series[] = [{ name: "Captured", tone: "good" }];

type SpanName = keyof typeof SPANS;

/** The charts of a span; another name is that of a day. */
export function PaymentCharts({ span: chosen = "day" }: { span?: string | undefined }) {
  const name = chosen in SPANS ? chosen as SpanName : "day";
  const clock = useLive(call("sandbox", "clock"), { every_ms: EVERY_MS });
  const newest = useLive(call("payments", "list", { limit: 1 }), { every_ms: EVERY_MS });
  const begin_ms = clock.data && beginOf(SPANS[name], Date.parse(clock.data.now));
  return (
    <>
      <div class="card-title">
        <h2 id="history">Payments</h2>
        <Choices
          label="Span of time"
          name="span"
          class="segments"
          value={name}
          set={(span) => go([], { span }, true)}
          options={Object.entries(SPANS).map(([value, { name }]) => ({
            value: value as SpanName,
            label: name,
          }))}
        />
      </div>
      <Reading
        label="payments"
        live={{ data: begin_ms === null ? null : newest.data, error: newest.error ?? clock.error }}
        rows={4}
      >
        {({ data }) =>
          data.length === 0
            ? (
              <Empty title="No payments yet">
                <p>Create a payment with a test card and watch its status.</p>
                <a class="button" href={href(["payments", "new"])}>Create the first payment</a>
              </Empty>
            )
            : <Charts key={`${name} ${begin_ms}`} span={SPANS[name]} begin_ms={begin_ms!} />}
      </Reading>
    </>
  );
}

function Charts({ span, begin_ms }: { span: Span; begin_ms: number }) {
  const newest = useNewest(
    call("payments", "list", {
      limit: MAX_PAGE,
      created_after: new Date(begin_ms - 1).toISOString(),
    }),
  );
  const [chosen, setChosen] = useState<string | null>(null);
  return (
    <Reading label="payments" live={{ data: newest, error: null }} rows={4}>
      {({ items: payments, is_cut }) => {
        if (payments.length === 0) return <Empty title={`No payment within ${span.name}`} />;
        const currencies = currenciesOf(payments);
        const currency = chosen !== null && currencies.includes(chosen) ? chosen : currencies[0]!;
        return (
          <>
            <div class="charts">
              <BarChart
                title="Payments by outcome"
                series={OUTCOME_SERIES}
                bars={barsOf(span, begin_ms, payments, OUTCOMES.length, (payment) =>
                  OUTCOMES.map((outcome) => outcome === outcomeOf(payment) ? 1 : 0))}
                format={String}
              />
              <BarChart
                title={`Volume in ${currency}`}
                series={VOLUME_SERIES}
                bars={barsOf(span, begin_ms, payments, 1, (payment) => [
                  payment.currency === currency ? payment.amount_captured : 0,
                ])}
                format={(amount) =>
                  formatMinor(amount, currency)}
              />
            </div>
            {currencies.length > 1 && (
              <label class="inline">
                <span>Currency of the volume</span>
                <select
                  value={currency}
                  onChange={(event) => setChosen(event.currentTarget.value)}
                >
                  {currencies.map((name) => <option key={name} value={name}>{name}</option>)}
                </select>
              </label>
            )}
            {is_cut && (
              <p class="quiet">
                The charts have the newest {payments.length} payments. There are more.
              </p>
            )}
          </>
        );
      }}
    </Reading>
  );
}
