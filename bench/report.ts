/**
 * The tables: medians with their least and greatest value, as Markdown. For the terminal with rates;
 * for docs/benchmarks.md with ratios alone, because only those mean anything on another machine.
 */

import type { Spread } from "./measurement.ts";
import type { LineResult, RunResults } from "./results.ts";

/** The line to which the others are compared. */
const YARDSTICK = { name: "create", connections: 64 };
/** The most that a server can answer under our load. */
const HTTP_FLOOR = "constant bytes by Deno.serve";
/** A tenth of the CPU time taken by other programs: ours, about the spread of a quiet machine. */
const OTHERS_MAX = 0.1;
const NONE = "–";

/** Rates, latencies and CPU. */
export function renderRates({ lines }: RunResults): string {
  const rows = lines.map((line) => [
    line.name,
    String(line.connections ?? NONE),
    spread(line.per_second, 0),
    number(line.p50_ms, 2),
    number(line.p99_ms, 2),
    spread(line.beside_per_second, 0),
    spread(line.ratio, 2),
    ...(["load", "server", "postgres", "others"] as const).map((who) =>
      number(line.cpu_us?.[who] ?? null, 0)
    ),
  ]);
  return table(
    [
      ["line", "connections", "answers/s", "p50 ms", "p99 ms", "beside/s", "ratio"],
      ["load µs", "server µs", "Postgres µs", "others µs"],
    ].flat(),
    rows,
  );
}

/** Ratios, and who needed the CPU. */
export function renderRatios({ lines }: RunResults): string {
  const yardstick = lines.find(({ name, connections }) =>
    name === YARDSTICK.name && connections === YARDSTICK.connections
  );
  const http = lines.find(({ name }) => name === HTTP_FLOOR);
  const by = (line: LineResult, other: LineResult | undefined) =>
    line.per_second && other?.per_second ? line.per_second.median / other.per_second.median : null;
  const rows = lines.map((line) => [
    line.name,
    String(line.connections ?? NONE),
    spread(line.ratio, 2),
    number(by(line, yardstick), 2),
    number(by(line, http), 2),
    number(line.p50_ms && line.p99_ms ? line.p99_ms / line.p50_ms : null, 1),
    cpuShares(line),
  ]);
  return table(
    [
      ["line", "connections", "× what runs beside", "× create at 64", "× constant bytes"],
      ["p99 / p50", "CPU % load / server / Postgres"],
    ].flat(),
    rows,
  );
}

/** What is no rate. */
export function renderFigures({ figures }: RunResults): string {
  const rows = figures.map(({ name, unit, value }) => [name, unit, spread(value, 2)]);
  return table(["figure", "unit", "measured"], rows);
}

/** Targets, what was measured, and whether that is enough. */
export function renderTargets({ targets }: RunResults): string {
  const rows = targets.map(({ name, target, measured, is_reached }) => [
    name,
    target,
    spread(measured, 2),
    is_reached === null ? "not measured" : is_reached ? "yes" : "**no**",
  ]);
  return table(["target", "bound", "measured", "reached"], rows);
}

/** What has changed since an earlier run: ratios and figures, those beyond both spreads marked. */
export function renderChanges(before: RunResults, now: RunResults): string {
  const rows = [...judgedBy(now)].flatMap(([name, measured]) => {
    const earlier = judgedBy(before).get(name);
    if (!earlier) return [];
    const is_beyond = measured.max < earlier.min || measured.min > earlier.max;
    const change = `${((measured.median / earlier.median - 1) * 100).toFixed(0)} %`;
    return [[name, spread(earlier, 2), spread(measured, 2), change, is_beyond ? "yes" : ""]];
  });
  return table(
    ["ratio or figure", `at ${before.circumstances.commit}`, "now", "change", "beyond the spread"],
    rows,
  );
}

/** A sentence when other programs took so much of the machine that the figures say little. */
export function warnOfOthers({ lines }: RunResults): string | null {
  const shares = lines.flatMap(({ cpu_us }) => {
    if (cpu_us === null) return [];
    const { load, server, postgres, others } = cpu_us;
    return [others / (load + server + postgres + others)];
  }).toSorted((a, b) => a - b);
  const share = shares[shares.length >> 1];
  if (share === undefined || share < OTHERS_MAX) return null;
  return `OTHER PROGRAMS took ${(share * 100).toFixed(0)} % of the CPU time: ratios are too low, ` +
    "because one server process loses more to them than the many of pgbench do";
}

/** Every ratio and figure of a run by its name. */
function judgedBy({ lines, figures }: RunResults): Map<string, Spread> {
  const all = new Map<string, Spread>();
  for (const { name, connections, ratio } of lines) {
    if (ratio) all.set(connections === null ? name : `${name}, ${connections}`, ratio);
  }
  for (const { name, unit, value } of figures) if (value) all.set(`${name}, ${unit}`, value);
  return all;
}

/** Shares of our own CPU time, in percent: load, server, Postgres. */
function cpuShares({ cpu_us }: LineResult): string {
  if (cpu_us === null) return NONE;
  const { load, server, postgres } = cpu_us;
  return [load, server, postgres].map((used) =>
    (used / (load + server + postgres) * 100).toFixed(0)
  ).join(" / ");
}

function number(value: number | null, digits: number): string {
  return value === null ? NONE : value.toFixed(digits);
}

function spread(value: Spread | null, digits: number): string {
  if (value === null) return NONE;
  const { median, min, max } = value;
  if (min === max) return median.toFixed(digits);
  return `${median.toFixed(digits)} (${min.toFixed(digits)}–${max.toFixed(digits)})`;
}

function table(head: string[], rows: string[][]): string {
  const lines = [head, head.map((_, i) => i === 0 ? "---" : "---:"), ...rows];
  return lines.map((cells) => `| ${cells.join(" | ")} |`).join("\n") + "\n";
}
