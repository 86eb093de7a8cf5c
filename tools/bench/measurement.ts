/** The measured values, repetition by repetition, and their median, minimum and maximum. */

import type { Run } from "./measure.ts";

/** One repetition: a run of the product, and the rate of its peer, measured directly before. */
interface Repetition {
  /** Null if the run did not count. */
  run: Run | null;
  /** Null if there is no peer, or its run did not count. */
  beside: number | null;
}

/** The repetitions of one line at one number of connections. */
export interface Measurement {
  name: string;
  /** Null if the number of connections has no meaning for this line. */
  connections: number | null;
  repetitions: Repetition[];
}

/** A measured number that is not a rate, such as a duration or a size. */
export interface Figure {
  name: string;
  unit: string;
  values: number[];
}

/** Everything that a run of the benchmark measured. */
export interface Measured {
  measurements: readonly Measurement[];
  figures: readonly Figure[];
}

/** CPU microseconds for each response. */
export type CpuPerResponse = Record<"load" | "server" | "postgres" | "others", number>;

/** A run of the product and a peer that are measured in turns. */
export interface Pair {
  name: string;
  /** Null if the number of connections has no meaning for this pair. */
  connections: number | null;
  run(): Promise<Run | null>;
  /** Measures the rate of the peer, before `run`. Null if the run has no peer. */
  measureBeside: (() => Promise<number | null>) | null;
}

/** Measures one repetition of a pair. */
export async function measurePair({ run, measureBeside }: Pair): Promise<Repetition> {
  const beside = measureBeside === null ? null : await measureBeside();
  return { beside, run: await run() };
}

/** Median, minimum and maximum. */
interface Spread {
  median: number;
  min: number;
  max: number;
}

/** The median; NaN if there are no values. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const half = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[half]! : (sorted[half - 1]! + sorted[half]!) / 2;
}

/** The value below which this share of the sorted values lies; NaN if there are no values. */
export function quantile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? NaN;
}

/** The spread of the finite values; null if there are none. */
export function spreadOf(values: readonly number[]): Spread | null {
  const known = values.filter(Number.isFinite);
  if (known.length === 0) return null;
  return { median: median(known), min: Math.min(...known), max: Math.max(...known) };
}

/** CPU microseconds for each response; null if they were not measured. */
export function cpuPerResponse({ cpu, responses }: Run): CpuPerResponse | null {
  if (cpu === null) return null;
  const { load, server, postgres, machine } = cpu;
  // The counters have steps, so the difference can be negative.
  const others = Math.max(0, machine - load - server - postgres);
  const each = (seconds: number) => seconds / responses * 1e6;
  return {
    load: each(load),
    server: each(server),
    postgres: each(postgres),
    others: each(others),
  };
}

/** The runs that count. */
export function runsOf({ repetitions }: Measurement): Run[] {
  return repetitions.flatMap(({ run }) => run ?? []);
}

/** The rates of the peer. */
export function besidesOf({ repetitions }: Measurement): number[] {
  return repetitions.flatMap(({ beside }) => beside ?? []);
}

/** The rate of the product divided by the rate of its peer, within each repetition. */
export function ratiosOf({ repetitions }: Measurement): number[] {
  return repetitions.flatMap(({ run, beside }) =>
    run === null || beside === null ? [] : [run.per_second / beside]
  );
}

/** The rate of one line divided by the rate of another, within each repetition. */
export function ratesBy(one: Measurement, other: Measurement): number[] {
  return one.repetitions.flatMap(({ run }, i) => {
    const by = other.repetitions[i]?.run;
    return run && by ? [run.per_second / by.per_second] : [];
  });
}
