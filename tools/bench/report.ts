/** The results as Markdown tables. */

import { type Figure, type LineName, LINES, median, type Program, type Run } from "./program.ts";

/** The runs of a program, by line. */
export type Runs = Map<Program, Partial<Record<LineName, Run[]>>>;

/** The results of a run of the benchmark. The first program is this service. */
interface Measured {
  runs: Runs;
  figures: readonly Figure[];
}

/** The machine and the settings of a run of the benchmark. */
interface Circumstances {
  commit: string;
  /** The commit that was measured in turns with it; null: none. */
  parent: string | null;
  /** In UTC. */
  date: string;
  cpus: number;
  /** Processes that wanted a processor in the minute before. */
  load: number;
  instances: number;
  deno: string;
  programs: readonly string[];
  /** PostgreSQL's settings, read from the server. */
  postgres: Record<string, string>;
  seconds: number;
  repetitions: number;
}

/** A goal of the project, which no other run changes. */
interface Goal {
  name: string;
  goal: string;
  value: number;
  is_reached: boolean;
}

/** The parent commit among the programs. */
export const PARENT = "parent commit";
/** The service among the programs. */
export const OURS = "this service";
/** A larger loss against the parent commit is named. */
const LOSS = 0.05;
const NONE = "–";

/** The machine and the settings as one paragraph. */
export function renderCircumstances(circumstances: Circumstances): string {
  const { commit, parent, date, cpus, load, instances, deno, programs, postgres } = circumstances;
  const settings = Object.entries(postgres).map(([name, value]) => `${name} ${value}`).join(", ");
  return `Commit ${commit}${parent === null ? "" : `, in turns with ${parent}`}, ${date}, ` +
    `${cpus} CPUs with a load of ${
      load.toFixed(1)
    } before, ${instances} processes of the service, Deno ${deno}, ${programs.join(", ")}. ` +
    `PostgreSQL: ${settings}. Median (minimum–maximum) of ${circumstances.repetitions} ` +
    `repetitions of ${circumstances.seconds} s.`;
}

/** The lines of every program. */
export function renderLines({ runs }: Measured): string {
  const [ours] = [...runs.values()];
  const rows = LINES.flatMap((line) =>
    [...runs].flatMap(([{ name, stores }, { [line]: of_line }]) => {
      if (of_line === undefined) return [];
      const by = (ratio: (peer: Run, own: Run) => number) =>
        name === OURS ? NONE : number(median(paired(ours!, line, of_line, ratio)), 2);
      return [[
        ...[line, name, stores],
        spread(of_line.map(({ cpu_us }) => cpu_us), 0),
        number(median(of_line.map(({ postgres_us }) => postgres_us)), 0),
        by((peer, own) => peer.cpu_us / own.cpu_us),
        spread(of_line.map(({ per_second }) => per_second), 0),
        number(median(of_line.map(({ p99_ms }) => p99_ms)), 1),
        by((peer, own) => own.per_second / peer.per_second),
      ]];
    })
  );
  const head = ["line", "program", "stores a payment", "CPU µs", "in PostgreSQL", "by CPU"];
  return table([...head, "requests/s", "p99 ms", "by rate"], rows, 3);
}

/** The sizes. */
export function renderFigures({ figures }: Measured): string {
  return table(
    ["figure", "unit", "measured"],
    figures.map(({ name, unit, value }) => [name, unit, number(value, 1)]),
  );
}

/** The goals, and a sentence about losses against the parent commit. */
export function renderGoals(measured: Measured): string {
  const rows = goalsOf(measured).filter(({ value }) => Number.isFinite(value)).map((
    { name, goal, value, is_reached },
  ) => [name, goal, number(value, 2), is_reached ? "yes" : "**no**"]);
  return table(["goal", "bound", "measured", "reached"], rows) + "\n" + renderLosses(measured);
}

function goalsOf({ runs, figures }: Measured): Goal[] {
  const all = [...runs];
  const of = (program: string, line: LineName) =>
    all.find(([{ name }]) => name === program)?.[1][line] ?? [];
  const least = (name: string, goal: number, value: number): Goal => ({
    ...{ name, goal: `≥ ${goal}`, value, is_reached: value >= goal },
  });
  const most = (name: string, goal: number, value: number): Goal => ({
    ...{ name, goal: `≤ ${goal}`, value, is_reached: value <= goal },
  });
  const cpu = (line: LineName, goal: number) => {
    const own = all[0]![1];
    const ratios = paired(own, line, of("stripe-mock", line), (p, o) => p.cpu_us / o.cpu_us);
    return least(`${line}, by CPU × stripe-mock`, goal, median(ratios));
  };
  const rate = (line: LineName, program: string, goal: number) => {
    const own = all[0]![1];
    const ratios = paired(own, line, of(program, line), (p, o) => o.per_second / p.per_second);
    return least(`${line}, by rate × ${program}`, goal, median(ratios));
  };
  const postgres = (line: LineName, goal: number) =>
    most(
      `${line}, µs in PostgreSQL`,
      goal,
      median(of(OURS, line).map(({ postgres_us }) => postgres_us)),
    );
  const figure = (text: string, unit: string, goal: number) =>
    most(
      `${text}, ${unit}`,
      goal,
      Math.max(
        ...figures.filter(({ name }) => name.includes(text) && !name.startsWith(PARENT))
          .map(({ value }) => value),
      ),
    );
  return [
    ...[cpu("create", 0.75), cpu("get", 2), cpu("list of 10", 1.2)],
    ...[postgres("create", 125), postgres("refund", 240), postgres("webhooks", 130)],
    rate("create, 1 connection", "pgbench", 0.75),
    rate("webhooks", "16 fetch loops", 0.6),
    ...[figure("memory of a process", "MB", 150), figure("space of a payment", "kB", 4.5)],
    ...[figure("WAL of a create", "kB", 3.5), figure("code of a start", "kB", 500)],
  ];
}

/** The lines and figures that are worse than those of the parent commit. */
function renderLosses({ runs, figures }: Measured): string {
  const [ours] = [...runs.values()];
  const parent = [...runs].find(([{ name }]) => name === PARENT)?.[1];
  if (parent === undefined) return "No parent commit was measured.\n";
  const lines = LINES.flatMap((line): [string, number][] => {
    const ratios = paired(ours!, line, parent[line] ?? [], (p, o) => o.cpu_us / p.cpu_us);
    return [[`${line}, CPU`, median(ratios)]];
  });
  const sizes = figures.flatMap(({ name, value }): [string, number][] => {
    const before = figures.find((one) => one.name === name.replace(OURS, PARENT));
    return name.startsWith(OURS) && before ? [[name, value / before.value]] : [];
  });
  const losses = [...lines, ...sizes].filter(([, ratio]) => ratio > 1 + LOSS).map(([name, ratio]) =>
    `${name} × ${ratio.toFixed(2)}`
  );
  const bound = `more than ${LOSS * 100} % above the parent commit`;
  return losses.length === 0
    ? `Nothing is ${bound}.\n`
    : `These are ${bound}: ${losses.join("; ")}.\n`;
}

/** A ratio within each repetition that both programs have. */
function paired(
  ours: Partial<Record<LineName, Run[]>>,
  line: LineName,
  peer: readonly Run[],
  ratio: (peer: Run, own: Run) => number,
): number[] {
  return peer.flatMap((run, i) => {
    const own = ours[line]?.[i];
    return own === undefined ? [] : [ratio(run, own)];
  });
}

function number(value: number, digits: number): string {
  return Number.isFinite(value) ? value.toFixed(digits) : NONE;
}

function spread(values: readonly number[], digits: number): string {
  const known = values.filter(Number.isFinite);
  if (known.length === 0) return NONE;
  const [middle, min, max] = [median(known), Math.min(...known), Math.max(...known)]
    .map((value) => value.toFixed(digits));
  return min === max ? middle! : `${middle} (${min}–${max})`;
}

/** A table whose first columns are text. */
function table(head: string[], rows: string[][], texts = 1): string {
  const lines = [head, head.map((_, i) => i < texts ? "---" : "---:"), ...rows];
  return lines.map((cells) => `| ${cells.join(" | ")} |`).join("\n") + "\n";
}
