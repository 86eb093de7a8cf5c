/**
 * `deno task bench`: puts load on the product, in turns with other programs and with pgbench. Prints
 * the lines, the figures, and the ratios with those of the last complete run as bounds. Exits with
 * 1 if a run did not count. STRIPE_MOCK, LOCALSTRIPE_PYTHON and FORMANCE name the other programs.
 *
 *   --quick            one short repetition: checks the benchmark itself, says nothing about speed
 *   --seconds N        measured time of a run (2)
 *   --repetitions N    repetitions of each line (3)
 *   --only TEXT        only lines whose name contains the text
 *   --write            writes the tables of a complete run into docs/benchmarks.md, and makes the
 *                      run the bound of the following ones
 */

import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { checkBooks } from "../../apps/operator/check_books.ts";
import { readCommit } from "../git.ts";
import { judge, readLastRun, writeLastRun } from "./bounds.ts";
import { writeDocument } from "./document.ts";
import { type AtEnd, type Bench, counts, startLoad } from "./measure.ts";
import { peerLines } from "./peers.ts";
import { findPgbench } from "./pgbench.ts";
import { PROJECT_DIR, readDurability } from "./product.ts";
import {
  type Circumstances,
  renderBounds,
  renderCircumstances,
  renderFigures,
  renderLines,
  renderPeers,
  warnOfOthers,
} from "./report.ts";
import { measureStandard } from "./standard.ts";

/** The command line. */
interface Options {
  seconds: number;
  repetitions: number;
  quick: boolean;
  only: string;
  write: boolean;
}

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
  if (write && (quick || only !== "")) {
    console.error("--write needs a complete run, without --quick and --only");
    Deno.exit(2);
  }
  return {
    ...{ quick, only, write },
    seconds: positive("--seconds", values.seconds ?? (quick ? "0.25" : "2")),
    repetitions: positive("--repetitions", values.repetitions ?? (quick ? "1" : "3")),
  };
}

function positive(flag: string, text: string): number {
  if (Number(text) > 0) return Number(text);
  console.error(`${flag} "${text}" is not a number above 0`);
  Deno.exit(2);
}

/** Measures and then ends every started process, also after SIGINT and SIGTERM. */
async function runBenchmark(options: Options): Promise<number> {
  const steps: (() => Promise<unknown>)[] = [];
  let ending: Promise<boolean> | undefined;
  // Both a signal and the normal end call this. The second call must wait for the first.
  const end = () =>
    ending ??= (async () => {
      let is_well = true;
      for (let step = steps.pop(); step !== undefined; step = steps.pop()) {
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
    code = await measureAndReport(options, (step) => steps.push(step)) ? 0 : 1;
  } finally {
    if (!await end()) code = 1;
  }
  return code;
}

/** Measures, prints and writes; false if a run did not count. */
async function measureAndReport(options: Options, atEnd: AtEnd): Promise<boolean> {
  const pgbench = await findPgbench();
  if (pgbench === null) {
    console.error("pgbench IS MISSING: no floor is measured (Debian: package postgresql)");
  }
  const discarded: string[] = [];
  const load = await startLoad(atEnd);
  const { measured, benches } = await measureStandard(
    { ...options, has_pgbench: pgbench !== null },
    load,
    discarded,
    atEnd,
  );
  console.error("Checking the invariants");
  for (const bench of benches) {
    const broken = (await checkBooks(bench.sql)).filter(({ breaches }) => breaches > 0);
    const problems = broken.map(({ invariant, breaches, examples }) =>
      `${invariant}: ${breaches} breaches, such as ${examples[0]}`
    );
    counts(bench, "the books at the end", problems);
  }
  const described = await readCircumstances(options, pgbench, benches[0]!);
  const circumstances = renderCircumstances(described);
  const peers = renderPeers(measured);
  const lines = renderLines(measured);
  const figures = renderFigures(measured.figures);
  const last = await readLastRun();
  const judged = judge(measured, last);
  const bounds = renderBounds(judged, last);
  console.log(["# Benchmarks\n", `${circumstances}\n`, peers, lines, figures, bounds].join("\n"));
  const warning = warnOfOthers(measured.measurements);
  if (warning !== null) console.log(warning);
  if (discarded.length > 0) {
    console.log(`Runs that do not count: ${discarded.length}\n${discarded.join("\n")}`);
  }
  if (options.write) {
    await writeLastRun(judged, described);
    const has_peers = peerLines(measured.measurements).length > 0;
    await writeDocument({
      ...(has_peers && { peers: `${circumstances}\n\n${peers}` }),
      bounds: `${circumstances} ${bounds}`,
      ...{ lines, figures },
    });
  }
  return discarded.length === 0;
}

async function readCircumstances(
  { seconds, repetitions }: Options,
  pgbench: string | null,
  { sql }: Bench,
): Promise<Circumstances> {
  return {
    commit: await readCommit(PROJECT_DIR),
    date: new Date().toISOString().slice(0, 10),
    cpus: availableParallelism(),
    deno: Deno.version.deno,
    postgres: await readDurability(sql),
    pgbench,
    ...{ seconds, repetitions },
  };
}
