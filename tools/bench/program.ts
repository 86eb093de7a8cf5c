/** The programs that the benchmark measures in turns, and what it measures of each. */

/** The requests that are measured, in the order of the table. */
export const LINES = [
  "create",
  "replay",
  "get",
  "list of 10",
  "refund",
  "webhooks",
  "create, 1 connection",
] as const;
export type LineName = (typeof LINES)[number];

/** One measured run. */
export interface Run {
  per_second: number;
  /** NaN if it was not measured. */
  p99_ms: number;
  /** CPU microseconds of a request in all processes of the program; NaN without /proc. */
  cpu_us: number;
  /** Those of them in PostgreSQL; NaN for a program without one. */
  postgres_us: number;
}

/** A running program. */
export interface Program {
  name: string;
  /** Where it stores a payment. */
  stores: string;
  /** Time of each line before the first run that counts; absent: none. */
  warmup_s?: number;
  has(line: LineName): boolean;
  /**
   * Measures a line once.
   * @throws {Error} if the run does not count, because of an error or of wrong books
   */
  measure(line: LineName, seconds: number): Promise<Run>;
}

/** A size of the service. */
export interface Figure {
  name: string;
  unit: string;
  value: number;
}

/** Registers a step that runs at the end; the last registered step runs first. */
export type AtEnd = (step: () => Promise<unknown>) => void;

/** Connections of every line except the last. */
export const CONNECTIONS = 64;

export function connectionsOf(line: LineName): number {
  return line === "create, 1 connection" ? 1 : CONNECTIONS;
}

/** The median; NaN without values. */
export function median(values: readonly number[]): number {
  const sorted = values.filter(Number.isFinite).toSorted((a, b) => a - b);
  const half = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[half]! : (sorted[half - 1]! + sorted[half]!) / 2;
}
