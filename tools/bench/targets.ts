/**
 * The targets, each a ratio or a figure of one run. If a line was not measured (`--only`, no pgbench),
 * its targets are not judged.
 */

import { CONNECTIONS } from "./line.ts";
import { addedName, PROVIDER_MS } from "./live_pairs.ts";
import {
  cpuPerResponse,
  type Measured,
  type Measurement,
  median,
  ratesBy,
  ratiosOf,
  runsOf,
} from "./measurement.ts";

/** A target and the measured values. */
export interface JudgedTarget {
  name: string;
  /** The bounds as text, such as "≥ 1.4". */
  target: string;
  values: readonly number[];
  /** Whether the median reaches the target; null if it was not measured. */
  is_reached: boolean | null;
}

/** Inclusive bounds of the median. */
interface Bounds {
  least?: number;
  most?: number;
  unit?: string;
}

/** Half of the bytes that commit a5b2c3a3 wrote. */
const WAL_OF_A_CREATE = 7_070 / 2;

/** The targets of a run on a fresh database. */
export function judgeStandard(measured: Measured): JudgedTarget[] {
  const { ratio, rates, tails, figure, latency, cpu } = new Finder(measured);
  return [
    judge("create × stripe-mock", ratio("create beside stripe-mock"), { least: 0.8 }),
    judge("get × stripe-mock", ratio("get beside stripe-mock"), { least: 1.5 }),
    judge("list of 10 × stripe-mock", ratio("list of 10 beside stripe-mock"), { least: 1 }),
    judge("CPU of a create, server", cpu("create", "server"), { most: 110, unit: "µs" }),
    judge("CPU of a create, PostgreSQL", cpu("create", "postgres"), { most: 110, unit: "µs" }),
    judge("create, 64 connections, × pgbench", ratio("create", 64), { least: 1.4 }),
    judge("create, 128 connections, × pgbench", ratio("create", 128), { least: 1.7 }),
    judge("create × seven round trips", ratio("create beside seven round trips"), { least: 8 }),
    judge("create, 1 connection, × pgbench with 1", ratio("create", 1), { least: 0.6 }),
    judge("create at half the peak, p99 / p50", tails("create, open loop beside closed"), {
      most: 10,
    }),
    judge("replay × create", rates("replay", "create"), { least: 1.2 }),
    judge("get × pgbench", ratio("get"), { least: 0.5 }),
    judge("get × the same uncoalesced", ratio("get beside the same uncoalesced"), { least: 1.4 }),
    judge("list of 10 × get", rates("list of 10", "get"), { least: 0.5 }),
    judge("refund × create", rates("refund of a part", "create"), { least: 0.8 }),
    judge("cancel × create", rates("cancel", "create"), { least: 0.5 }),
    judge("advance × create", rates("advance", "create"), { least: 0.5 }),
    judge("deep page × first page", ratio("deep page beside the first"), { least: 0.9 }),
    judge("reset of 100000 payments", figure("reset of 100000 payments"), { most: 2, unit: "s" }),
    judge("creates elsewhere during it × before", ratio("create during a reset of 100000"), {
      least: 0.8,
    }),
    judge(
      "creates beside a hostile reader × without",
      ratio("create beside a hostile reader of 200000"),
      { least: 0.9 },
    ),
    judge("webhooks × fetch loop of 16", ratio("webhooks beside fetch"), { least: 0.7 }),
    judge("create to arrival at 100/s, p50", latency("create to arrival, 100/s", "p50_ms"), {
      most: 15,
      unit: "ms",
    }),
    judge("create to arrival at 100/s, p99", latency("create to arrival, 100/s", "p99_ms"), {
      most: 80,
      unit: "ms",
    }),
    judge(
      "create until every event has arrived × without endpoints",
      ratio("create until every event has arrived"),
      { least: 0.7 },
    ),
    ...PROVIDER_MS.flatMap((delay_ms) => {
      const name = addedName(delay_ms);
      return [
        judge(`${name}, p50`, latency(name, "p50_ms"), { most: 12, unit: "ms" }),
        judge(`${name}, p99`, latency(name, "p99_ms"), { most: 60, unit: "ms" }),
      ];
    }),
    judge(
      "connections held by 300 waiting live creates",
      figure("connections held by 300 waiting live creates"),
      { most: 0 },
    ),
    judge("a completed payment", figure("a completed payment"), { most: 4, unit: "kB" }),
    judge(
      "a completed payment with its webhooks",
      figure("a completed payment with its webhooks"),
      { most: 6, unit: "kB" },
    ),
    judge("WAL of a create", figure("WAL of a create"), { most: WAL_OF_A_CREATE, unit: "bytes" }),
    ...judgeMemory(measured),
    judge("ready, second start", figure("ready: second start"), { most: 2, unit: "s" }),
    judge("ready, warm cache", figure("ready: first start, warm cache"), { most: 5, unit: "s" }),
    ...["api-v1-payments", "api-v1-sandbox"].flatMap((name) => [
      judge(`start of ${name}`, figure(`start of ${name}`), { most: 500, unit: "kB" }),
      judge(
        `import and first response of ${name}, Deno 2.1.4`,
        figure(`import and first response of ${name}`),
        { most: 50, unit: "ms CPU" },
      ),
    ]),
  ];
}

/** The targets of a run on a filled database: each line beside the same line on a fresh one. */
export function judgeFilled(measured: Measured, rows: number): JudgedTarget[] {
  const { ratio } = new Finder(measured);
  return [
    ...measured.measurements.filter(({ name }) => !name.startsWith("deep page")).map(({ name }) =>
      judge(`${name} at ${rows} payments × on a fresh database`, ratio(name), { least: 0.85 })
    ),
    judge("deep page × first page", ratio("deep page beside the first"), { least: 0.9, most: 1.1 }),
    ...judgeMemory(measured),
  ];
}

/** The targets of a run with days that pass. */
export function judgeMonth(measured: Measured): JudgedTarget[] {
  const { figure } = new Finder(measured);
  return [
    judge("retention with its pauses × creates", figure("retention with its pauses ÷ creates"), {
      least: 2,
    }),
    judge("p99 beside retention × without", figure("p99 beside retention ÷ without"), {
      most: 1.5,
    }),
    judge("size after a day × at the beginning", figure("size after a day ÷ at the beginning"), {
      most: 1.2,
    }),
  ];
}

/** The targets of a run of growth: no rise that is more than the noise of a machine. */
export function judgeGrowth({ figures }: Measured): JudgedTarget[] {
  return figures.map(({ name, values }) => judge(name, values, { most: 1.5 }));
}

function judgeMemory({ figures }: Measured): JudgedTarget[] {
  return figures.flatMap(({ name, values }) => {
    if (name.startsWith("memory of")) return [judge(name, values, { most: 150, unit: "MB" })];
    if (!name.startsWith("growth of")) return [];
    return [judge(name, values, { most: 20, unit: "MB" })];
  });
}

function judge(
  name: string,
  values: readonly number[],
  { least = -Infinity, most = Infinity, unit }: Bounds,
): JudgedTarget {
  const bounds = [
    ...(Number.isFinite(least) ? [`≥ ${least}`] : []),
    ...(Number.isFinite(most) ? [`≤ ${most}`] : []),
  ].join(", ");
  const middle = median(values);
  return {
    name,
    target: bounds + (unit ? ` ${unit}` : ""),
    values,
    is_reached: Number.isNaN(middle) ? null : middle >= least && middle <= most,
  };
}

/** Finds measured values by name; no values if the line was not measured. */
class Finder {
  readonly #measured: Measured;

  constructor(measured: Measured) {
    this.#measured = measured;
  }

  readonly ratio = (name: string, connections?: number): number[] => {
    const line = this.#line(name, connections);
    return line === undefined ? [] : ratiosOf(line);
  };

  /** The rate of one line divided by the rate of another, both at 64 connections. */
  readonly rates = (name: string, by: string): number[] => {
    const [one, other] = [this.#line(name, CONNECTIONS), this.#line(by, CONNECTIONS)];
    return one === undefined || other === undefined ? [] : ratesBy(one, other);
  };

  /** CPU microseconds for each response at 64 connections. */
  readonly cpu = (name: string, of: "server" | "postgres"): number[] => {
    const line = this.#line(name, CONNECTIONS);
    return line === undefined ? [] : runsOf(line).flatMap((run) => cpuPerResponse(run)?.[of] ?? []);
  };

  readonly tails = (name: string): number[] => {
    const line = this.#line(name);
    return line === undefined ? [] : runsOf(line).map(({ p50_ms, p99_ms }) => p99_ms / p50_ms);
  };

  readonly latency = (name: string, which: "p50_ms" | "p99_ms"): number[] => {
    const line = this.#line(name);
    return line === undefined ? [] : runsOf(line).map((run) => run[which]);
  };

  readonly figure = (name: string): readonly number[] =>
    this.#measured.figures.find((figure) => figure.name === name)?.values ?? [];

  #line(name: string, connections?: number): Measurement | undefined {
    return this.#measured.measurements.find((line) =>
      line.name === name && (connections === undefined || line.connections === connections)
    );
  }
}
