/**
 * The results of a run as they are kept in docs/benchmarks.json: what the document is made from, and
 * what the next run is compared with.
 */

import type { CpuTime } from "./cpu_time.ts";
import {
  besidesOf,
  type Figure,
  type Measurement,
  median,
  ratiosOf,
  runsOf,
  type Spread,
  spreadOf,
} from "./measurement.ts";
import { PROJECT_DIR } from "./product.ts";

/** CPU microseconds for each answer. */
export interface CpuPerAnswer {
  load: number;
  server: number;
  postgres: number;
  /** What other programs took meanwhile. */
  others: number;
}

/** One line of the table. */
export interface LineResult {
  name: string;
  connections: number | null;
  per_second: Spread | null;
  p50_ms: number | null;
  p99_ms: number | null;
  beside_per_second: Spread | null;
  ratio: Spread | null;
  cpu_us: CpuPerAnswer | null;
}

/** One number that is no rate. */
export interface FigureResult {
  name: string;
  unit: string;
  value: Spread | null;
}

/** A target and what was measured. */
export interface JudgedTarget {
  name: string;
  /** Such as "≥ 1.4". */
  target: string;
  measured: Spread | null;
  /** Of the median; null when it was not measured. */
  is_reached: boolean | null;
}

/** How and where was measured. */
export interface Circumstances {
  commit: string;
  cpus: number;
  deno: string;
  /** PostgreSQL's settings, as it tells them. */
  postgres: Record<string, string>;
  pgbench: string | null;
  seconds: number;
  repetitions: number;
}

/** A whole run. */
export interface RunResults {
  circumstances: Circumstances;
  /** Payments that the filled database had; null of a run without one. */
  rows: number | null;
  lines: LineResult[];
  figures: FigureResult[];
  targets: JudgedTarget[];
}

/** What is kept: the newest run of either kind. */
export interface KeptResults {
  standard: RunResults | null;
  filled: RunResults | null;
}

const PATH = `${PROJECT_DIR}docs/benchmarks.json`;

/** The kept results; none where there is no file. */
export async function readResults(): Promise<KeptResults> {
  try {
    return JSON.parse(await Deno.readTextFile(PATH));
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return { standard: null, filled: null };
    throw error;
  }
}

/** Keeps them. */
export async function writeResults(results: KeptResults): Promise<void> {
  await Deno.writeTextFile(PATH, JSON.stringify(results, null, 2) + "\n");
}

/** A measurement as a line. */
export function lineResult(measurement: Measurement): LineResult {
  const { name, connections } = measurement;
  const runs = runsOf(measurement);
  return {
    name,
    connections,
    per_second: rounded(runs.map((run) => run.per_second)),
    p50_ms: rounded(runs.map((run) => run.p50_ms))?.median ?? null,
    p99_ms: rounded(runs.map((run) => run.p99_ms))?.median ?? null,
    beside_per_second: rounded(besidesOf(measurement)),
    ratio: rounded(ratiosOf(measurement)),
    cpu_us: cpuOf(runs),
  };
}

/** A figure as it is kept. */
export function figureResult({ name, unit, values }: Figure): FigureResult {
  return { name, unit, value: rounded(values) };
}

/** The spread, in digits that mean something. */
export function rounded(values: readonly number[]): Spread | null {
  const spread = spreadOf(values);
  if (spread === null) return null;
  const round = (value: number) => Number(value.toPrecision(4));
  return { median: round(spread.median), min: round(spread.min), max: round(spread.max) };
}

function cpuOf(runs: readonly { cpu: CpuTime | null; answered: number }[]): CpuPerAnswer | null {
  const known = runs.flatMap(({ cpu, answered }) => cpu === null ? [] : [{ cpu, answered }]);
  if (known.length === 0) return null;
  const each = (used: (cpu: CpuTime) => number) =>
    Math.round(median(known.map(({ cpu, answered }) => used(cpu) / answered * 1e6)));
  return {
    load: each(({ load }) => load),
    server: each(({ server }) => server),
    postgres: each(({ postgres }) => postgres),
    // The counters' steps can make it less than nothing.
    others: each((cpu) => Math.max(0, cpu.machine - cpu.load - cpu.server - cpu.postgres)),
  };
}
