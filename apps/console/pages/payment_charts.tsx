/** The charts of payments over time: their outcomes, and the volume of a currency. */

import { useState } from "preact/hooks";
import type { Payment } from "../../../packages/client/mod.ts";
import { MAX_PAGE } from "../../../shared/schema/limits.ts";
import { type Bar, BarChart, type Series } from "../parts/bar_chart.tsx";
import { call } from "../data/calls.ts";
import { Card } from "../parts/page_parts.tsx";
import { Choices, InlineSelect, optionsOf } from "../parts/fields.tsx";
import { useLive, useNewest } from "../data/live.ts";
import { formatMinor } from "../data/money.ts";
import { PAYMENTS } from "./money_lists.tsx";
import { Empty, Reading } from "../parts/notice.tsx";
import { go } from "../data/route.ts";
import { formatTime } from "../data/times.ts";
import { toneOf } from "../data/words.ts";

/** A span of time up to now, and the time of each bar. */
interface Span {
  name: string;
  bars: number;
  bar_ms: number;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** The spans that the page offers. The service deletes payments of a sandbox after 30 days. */
const SPANS: Readonly<Record<"hour" | "day" | "week" | "month", Span>> = {
  hour: { name: "1 hour", bars: 30, bar_ms: 2 * MINUTE_MS },
  day: { name: "24 hours", bars: 24, bar_ms: HOUR_MS },
  week: { name: "7 days", bars: 28, bar_ms: 6 * HOUR_MS },
  month: { name: "30 days", bars: 30, bar_ms: DAY_MS },
};

/** The outcomes, from the bottom of a bar to its top. */
const OUTCOMES = ["Succeeded", "Open", "Not paid", "Disputed"] as const;

type Outcome = typeof OUTCOMES[number];

/** The outcomes that a status can have by its tone; a status of another tone is open. */
const OUTCOMES_OF_TONES: Readonly<Partial<Record<ReturnType<typeof toneOf>, Outcome>>> = {
  good: "Succeeded",
  info: "Succeeded",
  bad: "Not paid",
  off: "Not paid",
};

/** Returns the outcome of a payment. */
function outcomeOf({ status }: Payment): Outcome {
  return status === "chargeback" ? "Disputed" : OUTCOMES_OF_TONES[toneOf(status)] ?? "Open";
}

/**
 * Returns the beginning of a span in milliseconds. Its bars begin at whole hours or days of the
 * user's time zone, so the beginning stays until the next bar begins.
 */
function beginOf({ bars, bar_ms }: Span, now_ms: number): number {
  const offset_ms = new Date(now_ms).getTimezoneOffset() * MINUTE_MS;
  const last = Math.floor((now_ms - offset_ms) / bar_ms) * bar_ms + offset_ms;
  return last - (bars - 1) * bar_ms;
}

/** Returns the bars of a span. `values` gives a payment's share of each series. */
function barsOf(
  span: Span,
  begin_ms: number,
  payments: readonly Payment[],
  series: number,
  values: (payment: Payment) => readonly number[],
): Bar[] {
  const bars = Array.from({ length: span.bars }, (_, at) => ({
    label: formatTime(new Date(begin_ms + at * span.bar_ms)).replace(/:\d\d$/, ""),
    values: Array.from({ length: series }, () => 0),
  }));
  for (const payment of payments) {
    const at = Math.floor((Date.parse(payment.created_at) - begin_ms) / span.bar_ms);
    const bar = bars[at];
    if (bar) values(payment).forEach((value, n) => bar.values[n]! += value);
  }
  return bars;
}

/** Returns the currencies of payments, the most frequent one first. */
function currenciesOf(payments: readonly Payment[]): string[] {
  const counts = new Map<string, number>();
  for (const { currency } of payments) counts.set(currency, (counts.get(currency) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1]).map(([currency]) => currency);
}

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
    <Card
      title="Payments"
      class="wide-card"
      actions={
        <Choices
          label="Span of time"
          name="span"
          value={name}
          set={(span) => go([], { span }, true)}
          options={Object.entries(SPANS).map(([value, { name }]) => [value as SpanName, name])}
        />
      }
    >
      <Reading
        label="payments"
        live={{ data: begin_ms === null ? null : newest.data, error: newest.error ?? clock.error }}
        rows={4}
      >
        {({ data }) =>
          data.length === 0
            ? <Empty title="No payments yet">{PAYMENTS.empty({})}</Empty>
            // A next bar keeps the charts, so that an open table stays open.
            : <Charts key={name} span={SPANS[name]} begin_ms={begin_ms!} />}
      </Reading>
    </Card>
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
              <InlineSelect
                label="Currency of the volume"
                value={currency}
                set={setChosen}
                options={optionsOf(currencies)}
              />
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
