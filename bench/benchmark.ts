/**
 * `deno task bench`: the product under a closed loop, beside pgbench issuing the same statements to
 * the same server, in turns; then its keys and webhooks beside what they are compared with. Prints
 * a Markdown table; exits with 1 if a run did not count.
 *
 *   --quick            one short repetition: shows that everything works, says nothing about speed
 *   --seconds N        measured time of a run (2)
 *   --repetitions N    how often each line is measured (3)
 *   --only TEXT        the lines whose name holds the text
 *   --write            writes the ratios to docs/benchmarks.md
 */

import postgres from "postgres";
import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { measureCeiling } from "./load_ceiling.ts";
import { type Line, prepareLines } from "./line.ts";
import { startLoadProcess } from "./load_process.ts";
import { type Bench, measureFloor, measureServer } from "./measure.ts";
import { measurePair, type Pair, prepareKeyPair } from "./pair.ts";
import { findPgbench } from "./pgbench.ts";
import { PROJECT_DIR, readDurability, startProduct } from "./product.ts";
import { openRecorder } from "./recorded_statement.ts";
import { type Measurement, renderRates, renderRatios, warnOfOthers } from "./report.ts";
import { prepareWebhookPairs } from "./webhook_pairs.ts";

/** What is asked for. */
interface Options {
  seconds: number;
  repetitions: number;
  quick: boolean;
  only: string;
  write: boolean;
}

/** Clients of pgbench beside many connections; the better of them is the floor. */
const FLOOR_CLIENTS = [8, 16];
const DOCUMENT = `${PROJECT_DIR}docs/benchmarks.md`;

if (import.meta.main) Deno.exit(await runBenchmark(readOptions(Deno.args)));

function readOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      quick: { type: "boolean", default: false },
      write: { type: "boolean", default: false },
      only: { type: "string", default: "" },
      seconds: { type: "string" },
      repetitions: { type: "string" },
    },
  });
  const { quick, only, write } = values;
  return {
    quick,
    only,
    write,
    seconds: Number(values.seconds ?? (quick ? 0.5 : 2)),
    repetitions: Number(values.repetitions ?? (quick ? 1 : 3)),
  };
}

/** Runs it all and ends what it started, also after Ctrl-C or SIGTERM; gives the exit code. */
async function runBenchmark(options: Options): Promise<number> {
  const ends: (() => Promise<unknown>)[] = [];
  let ending: Promise<void> | undefined;
  // One promise: what the first end breaks must not end the process before it is done.
  const end = () =>
    ending ??= (async () => {
      for (let step = ends.pop(); step !== undefined; step = ends.pop()) await step();
    })();
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    Deno.addSignalListener(signal, () => end().finally(() => Deno.exit(130)));
  }
  try {
    return await measureAll(options, (step) => ends.push(step));
  } finally {
    await end();
  }
}

async function measureAll(
  options: Options,
  atEnd: (step: () => Promise<unknown>) => void,
): Promise<number> {
  const pgbench = await findPgbench();
  if (pgbench === null) {
    console.error("pgbench IS MISSING: no floor is measured (Debian: package postgresql)");
  }
  const load = startLoadProcess();
  atEnd(() => load.stop());
  const ceiling = await measureCeiling(load, 32, Math.min(options.seconds, 2));
  const product = await startProduct(atEnd);
  const sql = postgres(product.superuser_url, { max: 1, onnotice: () => {} });
  atEnd(() => sql.end());
  const recorder = openRecorder(product.superuser_url, product.base_url);
  atEnd(() => recorder.close());
  const bench: Bench = { product, load, sql, seconds: options.seconds, discarded: [] };
  const asked = <T extends { name: string }>(all: T[]) =>
    all.filter(({ name }) => name.includes(options.only));
  const lines = asked(await prepareLines(bench, recorder));
  const pairs = asked([await prepareKeyPair(bench), ...await prepareWebhookPairs(bench, atEnd)]);
  // As after autovacuum's first visit, which would otherwise come at any moment of the run.
  await sql`analyze`;
  const header = await renderHeader(options, await readDurability(sql), pgbench);
  console.log(`${header}\nLoad generator against constant bytes: ${ceiling.toFixed(0)}/s\n`);
  const measurements = await measureLines(bench, lines, pairs, options, pgbench !== null);
  console.log(renderRates(measurements));
  const warning = warnOfOthers(measurements);
  if (warning !== null) console.log(warning);
  const { discarded } = bench;
  if (discarded.length > 0) console.log(`Runs that do not count: ${discarded.length}`);
  if (options.write) await writeDocument(header, measurements);
  return discarded.length === 0 ? 0 : 1;
}

/** Every line and pair in every repetition, in turns with what is beside it. */
async function measureLines(
  bench: Bench,
  lines: readonly Line[],
  pairs: readonly Pair[],
  { repetitions, quick }: Options,
  has_pgbench: boolean,
): Promise<Measurement[]> {
  const measurements = lines.map((line) =>
    line.connections.map((connections) => emptyMeasurement(line.name, connections))
  );
  const of_pairs = pairs.map(({ name, connections }) => emptyMeasurement(name, connections));
  for (let repetition = 0; repetition < repetitions; repetition++) {
    for (const [index, line] of lines.entries()) {
      const clients = quick ? FLOOR_CLIENTS.slice(0, 1) : FLOOR_CLIENTS;
      await measureLine(bench, line, measurements[index]!, has_pgbench ? clients : []);
    }
    for (const [index, pair] of pairs.entries()) await measurePair(pair, of_pairs[index]!);
  }
  return [...measurements.flat(), ...of_pairs];
}

function emptyMeasurement(name: string, connections: number | null): Measurement {
  return { name, connections, runs: [], floors: [], ratios: [] };
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
  // In turns: 1, server at 1, 8, server at 32, 16, server at 64.
  const waiting = [...floor_clients];
  const answers = new Map<Measurement, number>();
  for (const [index, connections] of line.connections.entries()) {
    const measurement = measurements[index]!;
    const next = connections === 1 && floor_clients.length > 0 ? 1 : waiting.shift();
    if (next !== undefined) await measure(next);
    const run = await measureServer(bench, line.name, connections, await line.plan(), line.each);
    if (run === null) continue;
    measurement.runs.push(run);
    answers.set(measurement, run.per_second);
  }
  for (const clients of waiting) await measure(clients);
  for (const [measurement, rate] of answers) {
    const of_many = [...floors].filter(([clients]) => clients > 1).map(([, floor]) => floor);
    const floor = measurement.connections === 1 ? floors.get(1) : Math.max(...of_many);
    if (floor === undefined || !Number.isFinite(floor)) continue;
    measurement.floors.push(floor);
    measurement.ratios.push(rate / floor);
  }
}

async function renderHeader(
  { seconds, repetitions }: Options,
  durability: Record<string, string>,
  pgbench: string | null,
): Promise<string> {
  const settings = Object.entries(durability).map(([name, value]) => `${name} ${value}`);
  return [
    "# Benchmarks",
    "",
    `Commit ${await readCommit()}, ${availableParallelism()} CPUs, Deno ${Deno.version.deno}, ` +
    "load, server and PostgreSQL on one machine.",
    `PostgreSQL: ${settings.join(", ")}.`,
    `${pgbench ?? "pgbench: missing"}. Median (least–greatest) of ${repetitions} repetitions of ` +
    `${seconds} s, in turns with what is beside: pgbench with the same statements, or what the ` +
    "line names; the books were audited after every run.",
    "",
  ].join("\n");
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

async function writeDocument(header: string, measurements: Measurement[]): Promise<void> {
  const text = `${header}\n${renderRatios(measurements)}\n` +
    "Made by `deno task bench --write`. Rates differ from machine to machine; ratios within one " +
    "run do not, much.\n";
  await Deno.writeTextFile(DOCUMENT, text);
}
