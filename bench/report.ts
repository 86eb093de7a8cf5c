/**
 * The table: medians with their least and greatest value. For the terminal with rates; for
 * docs/benchmarks.md with ratios alone, because only those mean anything on another machine.
 */

import type { CpuTime } from "./cpu_time.ts";
import type { Run } from "./measure.ts";

/** What one line was measured to be at one number of connections; one item per repetition. */
export interface Measurement {
  name: string;
  /** Null for an open loop. */
  connections: number | null;
  runs: Run[];
  /** Of pgbench, the best over the clients of one repetition, or of what is named; may be empty. */
  floors: number[];
  /** Run by floor, within one repetition. */
  ratios: number[];
}

/** The line to which the others are compared. */
const YARDSTICK = { name: "create", connections: 32 };
/** A tenth of the CPU time taken by other programs: ours, about the spread of a quiet machine. */
const OTHERS_MAX = 0.1;
const NONE = "–";

/** Rates, latencies and CPU, as Markdown. */
export function renderRates(measurements: readonly Measurement[]): string {
  const rows = measurements.map((m) => [
    m.name,
    String(m.connections ?? NONE),
    spread(m.runs.map((run) => run.per_second), 0),
    middle(m.runs.map((run) => run.p50_ms), 2),
    middle(m.runs.map((run) => run.p99_ms), 2),
    spread(m.floors, 0),
    spread(m.ratios, 2),
    ...cpuPerAnswer(m),
  ]);
  return table(
    [
      ["line", "connections", "answers/s", "p50 ms", "p99 ms", "beside/s", "ratio"],
      ["load µs", "server µs", "Postgres µs", "others µs"],
    ].flat(),
    rows,
  );
}

/** Ratios, as Markdown. */
export function renderRatios(measurements: readonly Measurement[]): string {
  const yardstick = median(ratesOf(measurements.find(isYardstick)));
  const rows = measurements.map((m) => {
    const [load, server, postgres] = cpuShares(m);
    return [
      m.name,
      String(m.connections ?? NONE),
      spread(m.ratios, 2),
      middle(ratesOf(m).map((rate) => rate / yardstick), 2),
      middle(m.runs.map((run) => run.p99_ms / run.p50_ms), 1),
      `${load} / ${server} / ${postgres}`,
    ];
  });
  return table(
    [
      ["line", "connections", "× what runs beside", "× create at 32"],
      ["p99 / p50", "CPU % load / server / Postgres"],
    ].flat(),
    rows,
  );
}

/** A sentence when other programs took so much of the machine that the figures say little. */
export function warnOfOthers(measurements: readonly Measurement[]): string | null {
  const shares = measurements.flatMap(({ runs }) =>
    runs.flatMap(({ cpu }) => cpu === null ? [] : [othersOf(cpu) / cpu.machine])
  );
  if (shares.length === 0 || median(shares) < OTHERS_MAX) return null;
  const percent = (median(shares) * 100).toFixed(0);
  return `OTHER PROGRAMS took ${percent} % of the CPU time: ratios are too low, because one server ` +
    "process loses more to them than the many of pgbench do";
}

/** The middle value; NaN of none. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const half = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[half]! : (sorted[half - 1]! + sorted[half]!) / 2;
}

function isYardstick({ name, connections }: Measurement): boolean {
  return name === YARDSTICK.name && connections === YARDSTICK.connections;
}

function ratesOf(measurement: Measurement | undefined): number[] {
  return measurement?.runs.map((run) => run.per_second) ?? [];
}

/** CPU per answer in microseconds: load, server, Postgres, and what others took meanwhile. */
function cpuPerAnswer({ runs }: Measurement): string[] {
  return (["load", "server", "postgres", "others"] as const).map((who) =>
    middle(
      runs.flatMap(({ cpu, answered }) => {
        if (cpu === null) return [];
        const used = who === "others" ? othersOf(cpu) : cpu[who];
        return [used / answered * 1e6];
      }),
      0,
    )
  );
}

/** What other programs used; the counters' steps can make it less than nothing. */
function othersOf(cpu: CpuTime): number {
  return Math.max(0, cpu.machine - cpu.load - cpu.server - cpu.postgres);
}

/** Shares of our own CPU time, in percent: load, server, Postgres. */
function cpuShares({ runs }: Measurement): string[] {
  return (["load", "server", "postgres"] as const).map((who) =>
    middle(
      runs.flatMap(({ cpu }) =>
        cpu === null ? [] : [cpu[who] / (cpu.load + cpu.server + cpu.postgres) * 100]
      ),
      0,
    )
  );
}

function middle(values: readonly number[], digits: number): string {
  const known = values.filter(Number.isFinite);
  return known.length === 0 ? NONE : median(known).toFixed(digits);
}

function spread(values: readonly number[], digits: number): string {
  if (values.length < 2) return middle(values, digits);
  const [least, greatest] = [Math.min(...values), Math.max(...values)];
  return `${middle(values, digits)} (${least.toFixed(digits)}–${greatest.toFixed(digits)})`;
}

function table(head: string[], rows: string[][]): string {
  const lines = [head, head.map((_, i) => i === 0 ? "---" : "---:"), ...rows];
  return lines.map((cells) => `| ${cells.join(" | ")} |`).join("\n") + "\n";
}
