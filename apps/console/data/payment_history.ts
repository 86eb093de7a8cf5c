/** Volume and outcomes of payments over time: the figures of the charts of the home page. */

import type { Payment } from "../../../packages/client/mod.ts";
import { formatTime } from "./times.ts";
import { toneOf } from "./words.ts";

/** A bar: the span of time that it stands for, and the value of each series. */
export interface Bar {
  label: string;
  values: readonly number[];
}

/** A span of time up to now, and the time of each bar. */
export interface Span {
  name: string;
  bars: number;
  bar_ms: number;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** The spans that the page offers. The service deletes payments of a sandbox after 30 days. */
export const SPANS: Readonly<Record<"hour" | "day" | "week" | "month", Span>> = {
  hour: { name: "1 hour", bars: 30, bar_ms: 2 * MINUTE_MS },
  day: { name: "24 hours", bars: 24, bar_ms: HOUR_MS },
  week: { name: "7 days", bars: 28, bar_ms: 6 * HOUR_MS },
  month: { name: "30 days", bars: 30, bar_ms: DAY_MS },
};

/** The outcomes, from the bottom of a bar to its top. */
export const OUTCOMES = ["Succeeded", "Open", "Not paid", "Disputed"] as const;

type Outcome = typeof OUTCOMES[number];

/** The outcomes that a status can have by its tone; a status of another tone is open. */
const OUTCOMES_OF_TONES: Readonly<Partial<Record<ReturnType<typeof toneOf>, Outcome>>> = {
  good: "Succeeded",
  info: "Succeeded",
  bad: "Not paid",
  off: "Not paid",
};

/** Returns the outcome of a payment. */
export function outcomeOf({ status }: Payment): Outcome {
  return status === "chargeback" ? "Disputed" : OUTCOMES_OF_TONES[toneOf(status)] ?? "Open";
}

/**
 * Returns the beginning of a span in milliseconds. Its bars begin at whole hours or days of the
 * user's time zone, so the beginning stays until the next bar begins.
 */
export function beginOf({ bars, bar_ms }: Span, now_ms: number): number {
  const offset_ms = new Date(now_ms).getTimezoneOffset() * MINUTE_MS;
  const last = Math.floor((now_ms - offset_ms) / bar_ms) * bar_ms + offset_ms;
  return last - (bars - 1) * bar_ms;
}

/** Returns the bars of a span. `values` gives a payment's share of each series. */
export function barsOf(
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
export function currenciesOf(payments: readonly Payment[]): string[] {
  const counts = new Map<string, number>();
  for (const { currency } of payments) counts.set(currency, (counts.get(currency) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1]).map(([currency]) => currency);
}
