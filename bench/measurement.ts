/** What is measured, repetition by repetition, and its middle, least and greatest value. */

import type { Run } from "./measure.ts";

/** One repetition: a run of the product, and the rate of what ran beside it in turns. */
export interface Repetition {
  /** Null when it did not count. */
  run: Run | null;
  /** Null when there is none, or it did not count. */
  beside: number | null;
}

/** What one line was measured to be at one number of connections. */
export interface Measurement {
  name: string;
  /** Null where it says nothing. */
  connections: number | null;
  repetitions: Repetition[];
}

/** A number that is no rate: how long, how much, how large. */
export interface Figure {
  name: string;
  unit: string;
  values: number[];
}

/** Median with least and greatest value; null of none. */
export interface Spread {
  median: number;
  min: number;
  max: number;
}

/** The middle value; NaN of none. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const half = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[half]! : (sorted[half - 1]! + sorted[half]!) / 2;
}

/** The spread of the values that are numbers. */
export function spreadOf(values: readonly number[]): Spread | null {
  const known = values.filter(Number.isFinite);
  if (known.length === 0) return null;
  return { median: median(known), min: Math.min(...known), max: Math.max(...known) };
}

/** Runs that count. */
export function runsOf({ repetitions }: Measurement): Run[] {
  return repetitions.flatMap(({ run }) => run ?? []);
}

/** Rates of what ran beside. */
export function besidesOf({ repetitions }: Measurement): number[] {
  return repetitions.flatMap(({ beside }) => beside ?? []);
}

/** Rate by the rate beside, within each repetition. */
export function ratiosOf({ repetitions }: Measurement): number[] {
  return repetitions.flatMap(({ run, beside }) =>
    run === null || beside === null ? [] : [run.per_second / beside]
  );
}

/** One line's rate by another's, within each repetition. */
export function ratesBy(one: Measurement, other: Measurement): number[] {
  return one.repetitions.flatMap(({ run }, i) => {
    const by = other.repetitions[i]?.run;
    return run && by ? [run.per_second / by.per_second] : [];
  });
}
