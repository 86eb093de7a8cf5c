/**
 * The bounds of a run: the ratios of the last complete run (last_run.json). Each ratio compares two
 * measurements of one run, because times differ from machine to machine.
 */

import { MOST_KB } from "./footprint.ts";
import { CONNECTIONS, CREATE_CONNECTIONS } from "./line.ts";
import { type Measured, type Measurement, median, ratesBy, ratiosOf } from "./measurement.ts";
import { peerLines } from "./peers.ts";
import { PROJECT_DIR } from "./product.ts";

/** A measured ratio and its bound. */
export interface JudgedRatio {
  name: string;
  /** The ratio in each repetition. */
  values: readonly number[];
  /** The least ratio that is no loss; null if the last run has none. */
  bound: number | null;
  /** Whether the median reaches the bound; null without a bound. */
  is_reached: boolean | null;
}

/** The last complete run: its commit, its day in UTC, and the median of each ratio. */
export interface LastRun {
  commit: string;
  date: string;
  ratios: Record<string, number>;
}

const PATH = `${PROJECT_DIR}tools/bench/last_run.json`;
/** Ratios within one run are stable to about 10 %, so a larger loss has a cause. */
const TOLERANCE = 0.85;
const SIZE = `${MOST_KB} kB ÷`;

export async function readLastRun(): Promise<LastRun> {
  return JSON.parse(await Deno.readTextFile(PATH));
}

/** Keeps a complete run as the bound of the following ones. */
export async function writeLastRun(
  judged: readonly JudgedRatio[],
  { commit, date }: Pick<LastRun, "commit" | "date">,
): Promise<void> {
  const last: LastRun = {
    ...{ commit, date },
    ratios: Object.fromEntries(
      judged.map(({ name, values }) => [name, Number(median(values).toFixed(3))]),
    ),
  };
  await Deno.writeTextFile(PATH, JSON.stringify(last, null, 2) + "\n");
}

/** Compares a run with the last one. More is better for every ratio. */
export function judge(measured: Measured, { ratios }: LastRun): JudgedRatio[] {
  return readRatios(measured).map(([name, values]) => {
    const last = ratios[name];
    // Sizes are the same on every machine.
    const bound = name.startsWith(SIZE) ? 1 : last === undefined ? null : last * TOLERANCE;
    return { name, values, bound, is_reached: bound === null ? null : median(values) >= bound };
  });
}

/** The ratios of the measured lines. */
function readRatios({ measurements, figures }: Measured): [string, readonly number[]][] {
  const line = (name: string, connections: number | null = CONNECTIONS) =>
    measurements.find((one) => one.name === name && one.connections === connections);
  const beside = (name: string, one: Measurement | undefined): [string, number[]] => [
    name,
    one === undefined ? [] : ratiosOf(one),
  ];
  const by = (name: string, one?: Measurement, other?: Measurement): [string, number[]] => [
    name,
    one === undefined || other === undefined ? [] : ratesBy(one, other),
  ];
  const memory = figures.find(({ name }) => name.startsWith("memory after a fifth ÷ "));
  const starts = figures.filter(({ name }) => name.startsWith("start of "));
  const all: [string, readonly number[]][] = [
    ...starts.map(({ name, values }): [string, number[]] => [
      `${SIZE} ${name}`,
      values.map((kb) => MOST_KB / kb),
    ]),
    ...peerLines(measurements).map(({ request, program, measurement }) =>
      beside(`${request} × ${program}`, measurement)
    ),
    ...CREATE_CONNECTIONS.map((connections) =>
      beside(`create, ${connections} connections, × pgbench`, line("create", connections))
    ),
    beside("replay × pgbench", line("replay")),
    beside("get × pgbench", line("get")),
    beside("list of 10 × pgbench", line("list of 10")),
    by("replay × create", line("replay"), line("create")),
    by("list of 10 × get", line("list of 10"), line("get")),
    beside("webhooks × fetch loop of 16", line("webhooks beside fetch", 16)),
    beside(
      "create until every event has arrived × without endpoints",
      line("create until every event has arrived"),
    ),
    [memory?.name ?? "", memory?.values ?? []],
  ];
  return all.filter(([, values]) => values.some(Number.isFinite));
}
