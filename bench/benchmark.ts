/**
 * `deno task bench`: the product under load, beside pgbench issuing the same statements to the same
 * server, in turns; then beside itself and others doing the same in another way. Prints Markdown
 * tables, the targets and what has changed since docs/benchmarks.json; exits with 1 if a run did not
 * count.
 *
 *   --quick            one short repetition: shows that everything works, says nothing about speed
 *   --seconds N        measured time of a run (2)
 *   --repetitions N    how often each line is measured (3)
 *   --only TEXT        the lines whose name holds the text
 *   --rows N           a database with N payments beside a fresh one (filled.ts)
 *   --profile          where the time goes (profile.ts)
 *   --write            keeps the results: docs/benchmarks.json and docs/benchmarks.md
 */

import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { ALL_BOOKS, auditAgreement, readBooks } from "./books.ts";
import { writeDocument } from "./document.ts";
import { measureFilled } from "./filled.ts";
import { measureFootprint } from "./footprint.ts";
import { prepareHostileReaderPair } from "./hostile_reader.ts";
import { type Line, prepareLines, RequestForge } from "./line.ts";
import { startLoadProcess } from "./load_process.ts";
import { type Bench, counts, measureFloor, measureServer, openBench } from "./measure.ts";
import type { Figure, Measurement } from "./measurement.ts";
import { measureMemory, residentMb } from "./memory.ts";
import { measurePair } from "./pair.ts";
import { findPgbench } from "./pgbench.ts";
import { PROJECT_DIR, readDurability } from "./product.ts";
import { printProfile } from "./profile.ts";
import { measureReadyTimes } from "./ready_times.ts";
import { openRecorder } from "./recorded_statement.ts";
import {
  renderChanges,
  renderFigures,
  renderRates,
  renderTargets,
  warnOfOthers,
} from "./report.ts";
import { prepareResetPair } from "./reset_pair.ts";
import {
  type Circumstances,
  figureResult,
  lineResult,
  readResults,
  type RunResults,
  writeResults,
} from "./results.ts";
import { prepareServerPairs } from "./server_pairs.ts";
import { judgeFilled, judgeStandard, type Measured } from "./targets.ts";
import { prepareWebhookPairs } from "./webhook_pairs.ts";

/** What is asked for. */
interface Options {
  seconds: number;
  repetitions: number;
  quick: boolean;
  only: string;
  rows: number | null;
  profile: boolean;
  write: boolean;
}

/** Takes a step of the end; the last one given is the first one done. */
type AtEnd = (step: () => Promise<unknown>) => void;

/** Clients of pgbench beside many connections; the better of them is the floor. */
const FLOOR_CLIENTS = [8, 16];
/** Payments of the sandbox that is reset (performance targets), and in a quick run. */
const RESET_PAYMENTS = { standard: 100_000, quick: 1_000 };
/** Payments in the hostile reader's sandbox, more than a page reads; fewer in a quick run. */
const HOSTILE_PAYMENTS = { standard: 200_000, quick: 5_000 };
/** Creates over which the server's memory is watched. */
const MEMORY_CREATES = { standard: 100_000, quick: 2_000 };

if (import.meta.main) Deno.exit(await runBenchmark(readOptions(Deno.args)));

function readOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      quick: { type: "boolean", default: false },
      write: { type: "boolean", default: false },
      profile: { type: "boolean", default: false },
      only: { type: "string", default: "" },
      rows: { type: "string" },
      seconds: { type: "string" },
      repetitions: { type: "string" },
    },
  });
  const { quick, only, write, profile } = values;
  return {
    ...{ quick, only, write, profile },
    rows: values.rows === undefined ? null : positive("--rows", values.rows),
    seconds: positive("--seconds", values.seconds ?? (quick ? "0.5" : "2")),
    repetitions: positive("--repetitions", values.repetitions ?? (quick ? "1" : "3")),
  };
}

function positive(flag: string, text: string): number {
  if (Number(text) > 0) return Number(text);
  console.error(`${flag} "${text}" is no number above 0`);
  Deno.exit(2);
}

/** Runs it all and ends what it started, also after Ctrl-C or SIGTERM; gives the exit code. */
async function runBenchmark(options: Options): Promise<number> {
  const ends: (() => Promise<unknown>)[] = [];
  let ending: Promise<boolean> | undefined;
  // One promise: what the first end breaks must not end the process before it is done.
  const end = () =>
    ending ??= (async () => {
      let is_well = true;
      for (let step = ends.pop(); step !== undefined; step = ends.pop()) {
        await step().catch((error) => {
          console.error(error);
          is_well = false;
        });
      }
      return is_well;
    })();
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    Deno.addSignalListener(signal, () => end().finally(() => Deno.exit(130)));
  }
  let code = 1;
  try {
    const atEnd: AtEnd = (step) => ends.push(step);
    const is_counted = options.profile
      ? await printProfile(options.seconds, atEnd)
      : await measureAndTell(options, atEnd);
    code = is_counted ? 0 : 1;
  } finally {
    if (!await end()) code = 1;
  }
  return code;
}

/** Measures, prints, keeps; false when a run did not count. */
async function measureAndTell(options: Options, atEnd: AtEnd): Promise<boolean> {
  const pgbench = await findPgbench();
  if (pgbench === null) {
    console.error("pgbench IS MISSING: no floor is measured (Debian: package postgresql)");
  }
  const discarded: string[] = [];
  const { rows } = options;
  const { measured, benches } = rows === null
    ? await measureStandard(options, pgbench !== null, discarded, atEnd)
    : await measureScale({ ...options, rows }, discarded, atEnd);
  for (const bench of benches) {
    const books = await readBooks(bench.sql, ALL_BOOKS);
    counts(bench, "all books at the end", auditAgreement(books));
  }
  const results: RunResults = {
    circumstances: await readCircumstances(options, pgbench, benches[0]!),
    rows,
    lines: measured.measurements.map(lineResult),
    figures: measured.figures.map(figureResult),
    targets: rows === null ? judgeStandard(measured) : judgeFilled(measured, rows),
  };
  await tell(results, discarded, options);
  return discarded.length === 0;
}

async function measureScale(
  options: Options & { rows: number },
  discarded: string[],
  atEnd: AtEnd,
): Promise<{ measured: Measured; benches: Bench[] }> {
  const load = startLoadProcess();
  atEnd(() => load.stop());
  const { benches, ...measured } = await measureFilled(options, load, discarded, atEnd);
  return { measured, benches };
}

async function measureStandard(
  options: Options,
  has_pgbench: boolean,
  discarded: string[],
  atEnd: AtEnd,
): Promise<{ measured: Measured; benches: Bench[] }> {
  const { seconds, repetitions, quick, only } = options;
  const size = quick ? "quick" : "standard";
  const load = startLoadProcess();
  atEnd(() => load.stop());
  // Before anything else runs.
  const figures: Figure[] = [];
  if ("ready".includes(only)) figures.push(...await measureReadyTimes(repetitions, atEnd));
  if ("bundle".includes(only)) {
    const footprint = await measureFootprint(repetitions);
    figures.push(...footprint.figures);
    for (const problem of footprint.problems) console.error(`NOT MEASURED: ${problem}`);
  }
  const open = () => openBench({ load, seconds, discarded }, atEnd);
  const benches: Bench[] = [];
  if ("memory".includes(only)) {
    const alone = await open();
    benches.push(alone);
    figures.push(...await measureMemory(new RequestForge(alone), MEMORY_CREATES[size]));
  }
  const bench = await open();
  benches.push(bench);
  const { product, sql } = bench;
  const recorder = openRecorder(product.superuser_url, product.base_url);
  atEnd(() => recorder.close());
  const forge = new RequestForge(bench);
  const asked = <T extends { name: string }>(all: T[]) =>
    all.filter(({ name }) => name.includes(only));
  const lines = asked(await prepareLines(forge, recorder));
  const reset = prepareResetPair(forge, RESET_PAYMENTS[size]);
  const hostile = prepareHostileReaderPair(forge, HOSTILE_PAYMENTS[size]);
  const pairs = asked([
    ...await prepareServerPairs(forge, atEnd),
    ...await prepareWebhookPairs(forge, atEnd),
    reset.pair,
    hostile.pair,
  ]);
  // As after autovacuum's first visit, which would otherwise come at any moment of the run.
  await sql`analyze`;
  const of_lines: Measurement[][] = lines.map(({ name, connections }) =>
    connections.map((connections) => ({ name, connections, repetitions: [] }))
  );
  const of_pairs: Measurement[] = pairs.map(({ name, connections }) => ({
    name,
    connections,
    repetitions: [],
  }));
  const clients = quick ? FLOOR_CLIENTS.slice(0, 1) : FLOOR_CLIENTS;
  for (let repetition = 0; repetition < repetitions; repetition++) {
    for (const [index, line] of lines.entries()) {
      sayProgress(repetition, line.name);
      await measureLine(bench, line, of_lines[index]!, has_pgbench ? clients : []);
    }
    for (const [index, pair] of pairs.entries()) {
      sayProgress(repetition, pair.name);
      of_pairs[index]!.repetitions.push(await measurePair(pair));
    }
  }
  figures.push(reset.figure, hostile.figure);
  const resident = residentMb(bench);
  if (resident !== null) {
    figures.push({ name: "resident after all lines", unit: "MB", values: [resident] });
  }
  return { measured: { measurements: [...of_lines.flat(), ...of_pairs], figures }, benches };
}

/** A run takes minutes: whoever waits sees where it is. */
function sayProgress(repetition: number, name: string): void {
  const passed = (performance.now() / 1000).toFixed(0).padStart(4);
  console.error(`${passed} s  ${repetition + 1}: ${name}`);
}

/** One repetition of a line. */
async function measureLine(
  bench: Bench,
  line: Line,
  measurements: readonly Measurement[],
  floor_clients: readonly number[],
): Promise<void> {
  const floors = new Map<number, number>();
  const measure = async (clients: number) => {
    if (line.statements === null) return;
    const rate = await measureFloor(bench, line.name, clients, line.statements, line.each);
    if (rate !== null) floors.set(clients, rate);
  };
  // In turns: 1, server at 1, 8, server at 32, 16, server at 64, server at 128.
  const waiting = [...floor_clients];
  const runs = [];
  for (const connections of line.connections) {
    const next = connections === 1 && floor_clients.length > 0 ? 1 : waiting.shift();
    if (next !== undefined) await measure(next);
    runs.push(await measureServer(bench, line.name, connections, await line.plan(), line.each));
  }
  for (const clients of waiting) await measure(clients);
  const of_many = [...floors].filter(([clients]) => clients > 1).map(([, floor]) => floor);
  const best = of_many.length === 0 ? null : Math.max(...of_many);
  for (const [index, { connections, repetitions }] of measurements.entries()) {
    const beside = connections === 1 ? floors.get(1) ?? null : best;
    repetitions.push({ run: runs[index]!, beside });
  }
}

/** Prints the tables, and keeps the results if that is asked for. */
async function tell(results: RunResults, discarded: string[], options: Options): Promise<void> {
  const kept = await readResults();
  const kind = results.rows === null ? "standard" : "filled";
  const earlier = kept[kind];
  const { commit, postgres: settings, ...others } = results.circumstances;
  console.log(`# Benchmarks\n\nCommit ${commit}, ${JSON.stringify(others)}`);
  console.log(`PostgreSQL: ${namesAndValues(settings)}\n`);
  console.log(renderRates(results));
  if (results.figures.length > 0) console.log(renderFigures(results));
  const warning = warnOfOthers(results);
  if (warning !== null) console.log(`${warning}\n`);
  if (earlier !== null) console.log(renderChanges(earlier, results));
  console.log(renderTargets(results));
  if (discarded.length > 0) {
    console.log(`Runs that do not count: ${discarded.length}\n${discarded.join("\n")}`);
  }
  if (!options.write) return;
  const all = { ...kept, [kind]: results };
  await writeResults(all);
  await writeDocument(all);
}

function namesAndValues(settings: Record<string, string>): string {
  return Object.entries(settings).map(([name, value]) => `${name} ${value}`).join(", ");
}

async function readCircumstances(
  { seconds, repetitions }: Options,
  pgbench: string | null,
  { sql }: Bench,
): Promise<Circumstances> {
  return {
    commit: await readCommit(),
    cpus: availableParallelism(),
    deno: Deno.version.deno,
    postgres: await readDurability(sql),
    pgbench,
    seconds,
    repetitions,
  };
}

/** The commit that is measured, and whether files differ from it. */
async function readCommit(): Promise<string> {
  const git = async (...args: string[]) => {
    const command = new Deno.Command("git", { args, cwd: PROJECT_DIR });
    const { success, stdout } = await command.output();
    if (!success) throw new Error("not a repository");
    return new TextDecoder().decode(stdout).trim();
  };
  try {
    const changes = await git("status", "--porcelain", "--untracked-files=no");
    return await git("rev-parse", "--short", "HEAD") + (changes === "" ? "" : " with changes");
  } catch {
    return "unknown";
  }
}
