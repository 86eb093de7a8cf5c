/** The results as Markdown tables: medians with minimum and maximum. */

import type { Run } from "./measure.ts";
import {
  besidesOf,
  type CpuPerResponse,
  cpuPerResponse,
  type Figure,
  type Measured,
  type Measurement,
  median,
  ratiosOf,
  runsOf,
  spreadOf,
} from "./measurement.ts";
import { OURS, peerLines } from "./peers.ts";
import type { JudgedRatio, LastRun } from "./bounds.ts";

/** The machine and the settings of a run of the benchmark. */
export interface Circumstances {
  commit: string;
  /** In UTC. */
  date: string;
  cpus: number;
  deno: string;
  /** PostgreSQL's settings, read from the server. */
  postgres: Record<string, string>;
  pgbench: string | null;
  seconds: number;
  repetitions: number;
}

/** On a quiet machine other programs take less than this share of the CPU time. */
const OTHERS_MAX = 0.1;
const NONE = "–";

/** The commit and the settings as one paragraph. */
export function renderCircumstances(circumstances: Circumstances): string {
  const { commit, date, cpus, deno, postgres, pgbench, seconds, repetitions } = circumstances;
  const settings = Object.entries(postgres).map(([name, value]) => `${name} ${value}`).join(", ");
  return `Commit ${commit}, ${date}, ${cpus} CPUs, Deno ${deno}; PostgreSQL: ${settings}; ` +
    `${pgbench ?? "no pgbench"}. Median (minimum–maximum) of ${repetitions} repetitions of ` +
    `${seconds} s.`;
}

/** The rates of the product and of its peers, by request. */
export function renderPeers({ measurements }: Measured): string {
  const rows = [...Map.groupBy(peerLines(measurements), ({ request }) => request)].flatMap(
    ([request, lines]) => {
      const rates = lines.flatMap(({ measurement }) =>
        runsOf(measurement).map(({ per_second }) => per_second)
      );
      return [
        [request, OURS.program, OURS.stores, spread(rates, 0), NONE],
        ...lines.map(({ program, stores, measurement }) => [
          ...[request, program, stores],
          ...[spread(besidesOf(measurement), 0), spread(ratiosOf(measurement), 2)],
        ]),
      ];
    },
  );
  return table(
    ["request", "program", "stores a payment", "requests/s", "this service × it"],
    rows,
    3,
  );
}

/** Rates, latencies, ratios, and CPU time for each response. */
export function renderLines({ measurements }: Measured): string {
  const of_peers = new Set(peerLines(measurements).map(({ measurement }) => measurement));
  const rows = measurements.filter((line) => !of_peers.has(line)).map((measurement) => {
    const runs = runsOf(measurement);
    const cpu = cpuOf(runs);
    return [
      measurement.name,
      String(measurement.connections ?? NONE),
      spread(runs.map(({ per_second }) => per_second), 0),
      number(median(runs.map(({ p50_ms }) => p50_ms)), 2),
      number(median(runs.map(({ p99_ms }) => p99_ms)), 2),
      spread(besidesOf(measurement), 0),
      spread(ratiosOf(measurement), 2),
      ...(["load", "server", "postgres", "others"] as const).map((name) => number(cpu?.[name], 0)),
    ];
  });
  return table(
    [
      ["line", "connections", "responses/s", "p50 ms", "p99 ms", "peer/s", "ratio"],
      ["load µs", "server µs", "Postgres µs", "others µs"],
    ].flat(),
    rows,
  );
}

/** The figures, such as durations and sizes. */
export function renderFigures(figures: readonly Figure[]): string {
  const rows = figures.map(({ name, unit, values }) => [name, unit, spread(values, 2)]);
  return table(["figure", "unit", "measured"], rows);
}

/** The ratios, their bounds, and whether the ratios reach them. */
export function renderBounds(judged: readonly JudgedRatio[], last: LastRun): string {
  const rows = judged.map(({ name, values, bound, is_reached }) => [
    name,
    bound === null ? NONE : `≥ ${bound.toFixed(2)}`,
    spread(values, 2),
    is_reached === null ? NONE : is_reached ? "yes" : "**no**",
  ]);
  return `The bounds are those of commit ${last.commit}, ${last.date}.\n\n` +
    table(["ratio", "bound", "measured", "reached"], rows);
}

/** A warning if other programs took so much CPU time that the figures mean little. */
export function warnOfOthers(measurements: readonly Measurement[]): string | null {
  const share = median(measurements.flatMap((measurement) => {
    const cpu = cpuOf(runsOf(measurement));
    if (cpu === null) return [];
    return [cpu.others / (cpu.load + cpu.server + cpu.postgres + cpu.others)];
  }));
  if (!(share >= OTHERS_MAX)) return null;
  return `OTHER PROGRAMS took ${(share * 100).toFixed(0)} % of the CPU time: ratios are too low, ` +
    "because they slow down one server process more than the many processes of pgbench";
}

function cpuOf(runs: readonly Run[]): CpuPerResponse | null {
  const known = runs.flatMap((run) => cpuPerResponse(run) ?? []);
  if (known.length === 0) return null;
  const each = (name: keyof CpuPerResponse) => median(known.map((cpu) => cpu[name]));
  return {
    load: each("load"),
    server: each("server"),
    postgres: each("postgres"),
    others: each("others"),
  };
}

function number(value: number | undefined, digits: number): string {
  return value === undefined || Number.isNaN(value) ? NONE : value.toFixed(digits);
}

function spread(values: readonly number[], digits: number): string {
  const found = spreadOf(values);
  if (found === null) return NONE;
  const { median, min, max } = found;
  if (min === max) return median.toFixed(digits);
  return `${median.toFixed(digits)} (${min.toFixed(digits)}–${max.toFixed(digits)})`;
}

/** A table whose first columns are text. */
function table(head: string[], rows: string[][], texts = 1): string {
  const lines = [head, head.map((_, i) => i < texts ? "---" : "---:"), ...rows];
  return lines.map((cells) => `| ${cells.join(" | ")} |`).join("\n") + "\n";
}
