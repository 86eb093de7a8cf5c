/** The charts of payments over time: their outcomes, and the volume of a currency. */

import { useState } from "preact/hooks";
import type { PaymentTotal } from "../../../packages/client/mod.ts";
import { type Bar, BarChart, type Series } from "../parts/bar_chart.tsx";
import { call } from "../data/calls.ts";
import { useClock } from "../data/clock.ts";
import { Card } from "../parts/page_parts.tsx";
import { Choices, InlineSelect, optionsOf } from "../parts/fields.tsx";
import { useLive } from "../data/live.ts";
import { formatMinor } from "../data/money.ts";
import { PAYMENTS } from "./money_lists.tsx";
import { Empty, Reading } from "../parts/notice.tsx";
import { go } from "../data/route.ts";
import { formatMinute } from "../data/times.ts";
import { countText, toneOf } from "../data/words.ts";

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
const OUTCOMES = ["Completed", "Open", "Not paid", "Chargeback"] as const;

type Outcome = typeof OUTCOMES[number];

/** The outcomes that a status can have by its tone; a status of another tone is open. */
const OUTCOMES_OF_TONES: Readonly<Partial<Record<ReturnType<typeof toneOf>, Outcome>>> = {
  good: "Completed",
  info: "Completed",
  bad: "Not paid",
  off: "Not paid",
};

function outcomeOf({ status }: PaymentTotal): Outcome {
  return status === "chargeback" ? "Chargeback" : OUTCOMES_OF_TONES[toneOf(status)] ?? "Open";
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

/** Returns the bars of a span. `values` gives the share of totals in each series. */
function barsOf(
  span: Span,
  begin_ms: number,
  totals: readonly PaymentTotal[],
  series: number,
  values: (total: PaymentTotal) => readonly number[],
): Bar[] {
  const bars = Array.from({ length: span.bars }, (_, at) => ({
    label: formatMinute(begin_ms + at * span.bar_ms),
    values: Array.from({ length: series }, () => 0),
  }));
  for (const total of totals) {
    const bar = bars[(Date.parse(total.from!) - begin_ms) / span.bar_ms];
    if (bar) values(total).forEach((value, n) => bar.values[n]! += value);
  }
  return bars;
}

/** Returns the currencies of payments, the most frequent one first. */
function currenciesOf(totals: readonly PaymentTotal[]): string[] {
  const counts = new Map<string, number>();
  for (const { currency, count } of totals) {
    counts.set(currency, (counts.get(currency) ?? 0) + count);
  }
  return [...counts].sort((a, b) => b[1] - a[1]).map(([currency]) => currency);
}

/** Milliseconds between two reads of totals, which can have several pages. */
const EVERY_MS = 2_500;
const TONES = ["good", "wait", "bad", "warn"] as const;
const OUTCOME_SERIES: readonly Series[] = OUTCOMES.map((name, n) => ({ name, tone: TONES[n]! }));
const VOLUME_SERIES: readonly Series[] = [{ name: "Captured", tone: "good" }];

type SpanName = keyof typeof SPANS;

/** The charts of a span; another name is that of a day. */
export function PaymentCharts({ span: chosen = "day" }: { span?: string | undefined }) {
  const name = chosen in SPANS ? chosen as SpanName : "day";
  const clock = useClock();
  const newest = useLive(call("payments", "list", { limit: 1 }));
  const begin_ms = clock && beginOf(SPANS[name], Date.parse(clock.now));
  return (
    <Card
      title="Payments"
      class="wide-card"
      actions={
        <Choices
          label="Span of time"
          name="span"
          value={name}
          set={(span) => go([], { span })}
          options={Object.entries(SPANS).map(([value, { name }]) => [value as SpanName, name])}
        />
      }
    >
      <Reading
        label="payments"
        live={{ data: begin_ms === null ? null : newest.data, error: newest.error }}
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
  const live = useLive(
    call("payments", "totals", {
      from: new Date(begin_ms).toISOString(),
      span: span.bar_ms / 1_000,
    }),
    { every_ms: EVERY_MS },
  );
  const [chosen, setChosen] = useState<string | null>(null);
  return (
    <Reading label="payments" live={live} rows={4}>
      {({ data: totals }) => {
        if (totals.length === 0) return <Empty title={`No payment within ${span.name}`} />;
        const currencies = currenciesOf(totals);
        const currency = chosen !== null && currencies.includes(chosen) ? chosen : currencies[0]!;
        return (
          <>
            <div class="charts">
              <BarChart
                title="Payments by outcome"
                series={OUTCOME_SERIES}
                bars={barsOf(span, begin_ms, totals, OUTCOMES.length, (total) =>
                  OUTCOMES.map((outcome) => outcome === outcomeOf(total) ? total.count : 0))}
                format={countText}
              />
              <BarChart
                title={`Volume in ${currency}`}
                series={VOLUME_SERIES}
                bars={barsOf(span, begin_ms, totals, 1, (total) => [
                  total.currency === currency ? total.amount_captured : 0,
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
          </>
        );
      }}
    </Reading>
  );
}
