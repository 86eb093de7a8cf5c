/**
 * `deno task bench`: puts load on the service, in turns with its parent commit, with other programs
 * and with pgbench. Prints the lines, the sizes and the goals. Exits with 1 if a run did not count.
 * STRIPE_MOCK, LOCALSTRIPE_PYTHON and FORMANCE name the other programs.
 *
 *   --quick            short runs without the parent: checks the benchmark itself
 *   --seconds N        time of a run (2)
 *   --repetitions N    repetitions of each line (3)
 *   --creates N        creates before memory and space are measured (1000000)
 *   --instances N      processes of the service; by default one for each processor, on Linux
 *   --parent REVISION  the commit to measure in turns (HEAD~1)
 *   --only TEXT        only lines whose name contains the text
 *   --write            writes the tables into docs/benchmarks.md, and its chart
 */

import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { readCommit } from "../git.ts";
import { writeDocument } from "./document.ts";
import { openFloor } from "./floor.ts";
import { measureFootprint } from "./footprint.ts";
import { openPeers } from "./peers.ts";
import { findPgbench } from "./pgbench.ts";
import { PROJECT_DIR, readDurability } from "./product.ts";
import { type AtEnd, type Figure, LINES, type Program, type Run } from "./program.ts";
import {
  OURS,
  PARENT,
  renderCircumstances,
  renderFigures,
  renderGoals,
  renderLines,
  type Runs,
} from "./report.ts";
import { openService, type Service } from "./service.ts";
import { fetchLoops, startReceiver } from "./webhooks.ts";
import { findWrk } from "./wrk.ts";

/** The command line. */
type Options = ReturnType<typeof readOptions>;

const NO_RUN: Run = { per_second: NaN, p99_ms: NaN, cpu_us: NaN, postgres_us: NaN };

if (import.meta.main) Deno.exit(await runBenchmark(readOptions(Deno.args)));

function readOptions(args: readonly string[]) {
  const { values } = parseArgs({
    args: [...args],
    options: {
      quick: { type: "boolean", default: false },
      write: { type: "boolean", default: false },
      only: { type: "string", default: "" },
      parent: { type: "string", default: "HEAD~1" },
      seconds: { type: "string" },
      repetitions: { type: "string" },
      creates: { type: "string" },
      instances: { type: "string" },
    },
  });
  const { quick, only, write, parent } = values;
  if (write && (quick || only !== "")) {
    console.error("--write needs a complete run, without --quick and --only");
    Deno.exit(2);
  }
  const cores = Deno.build.os === "linux" ? availableParallelism() : 1;
  return {
    ...{ only, write, parent: quick ? null : parent, warmup: !quick },
    seconds: whole("--seconds", values.seconds ?? (quick ? "1" : "2")),
    repetitions: whole("--repetitions", values.repetitions ?? (quick ? "1" : "3")),
    creates: whole("--creates", values.creates ?? (quick ? "2000" : "1000000")),
    instances: whole("--instances", values.instances ?? String(cores)),
  };
}

function whole(flag: string, text: string): number {
  if (/^[1-9]\d*$/.test(text)) return Number(text);
  console.error(`${flag} "${text}" is not a whole number above 0`);
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
  const wrk = await findWrk();
  if (wrk === null) {
    console.error("wrk IS MISSING: nothing is measured (Debian: package wrk)");
    return false;
  }
  const pgbench = await findPgbench();
  if (pgbench === null) console.error("pgbench IS MISSING (Debian: package postgresql)");
  const { instances, creates, seconds, repetitions } = options;
  const [load = NaN] = Deno.loadavg();
  const ours = await openService(OURS, PROJECT_DIR, instances, atEnd);
  const parent = await checkOutParent(options.parent, atEnd);
  const services = [ours];
  if (parent !== null) services.push(await openService(PARENT, parent.folder, instances, atEnd));
  startReceiver(atEnd);
  const programs = [
    ...services,
    ...await openPeers(ours, atEnd),
    ...pgbench === null ? [] : [await openFloor(ours, atEnd)],
    fetchLoops,
  ];
  const discarded: string[] = [];
  const runs = await measureLines(programs, options, discarded);
  const figures = options.only === "" ? await measureSizes(services, creates, discarded) : [];
  for (const service of services) discarded.push(...await service.audit());
  const circumstances = renderCircumstances({
    commit: await readCommit(PROJECT_DIR),
    parent: parent?.commit ?? null,
    date: new Date().toISOString().slice(0, 10),
    cpus: availableParallelism(),
    load,
    deno: Deno.version.deno,
    programs: [wrk, ...pgbench === null ? [] : [pgbench]],
    postgres: await readDurability(ours.sql),
    ...{ instances, seconds, repetitions },
  });
  const measured = { runs, figures };
  const parts = {
    lines: `${circumstances}\n\n${renderLines(measured)}`,
    goals: renderGoals(measured),
    figures: renderFigures(measured),
  };
  console.log(Object.values(parts).join("\n"));
  if (discarded.length > 0) console.log(`These do not count:\n${discarded.join("\n")}`);
  if (options.write) await writeDocument(parts);
  return discarded.length === 0;
}

/** Measures every line in turns, repetition by repetition. In the repetition 0 programs warm up. */
async function measureLines(
  programs: readonly Program[],
  { seconds, repetitions, only, warmup }: Options,
  discarded: string[],
): Promise<Runs> {
  const runs: Runs = new Map(programs.map((program) => [program, {}]));
  for (let repetition = warmup ? 0 : 1; repetition <= repetitions; repetition++) {
    for (const line of LINES.filter((line) => line.includes(only))) {
      const passed = (performance.now() / 1000).toFixed(0).padStart(4);
      console.error(`${passed} s  ${repetition}: ${line}`);
      for (const program of programs.filter((program) => program.has(line))) {
        const length_s = repetition > 0 ? seconds : program.warmup_s ?? 0;
        if (length_s === 0) continue;
        const run = await program.measure(line, length_s).catch((error) => {
          discarded.push(`${line}, ${program.name}: ${error.message}`);
          return NO_RUN;
        });
        if (repetition > 0) (runs.get(program)![line] ??= []).push(run);
      }
    }
  }
  return runs;
}

async function measureSizes(
  services: readonly Service[],
  creates: number,
  discarded: string[],
): Promise<Figure[]> {
  const figures = await measureFootprint();
  for (const service of services) {
    await service.measureSizes(creates).then(
      (sizes) => figures.push(...sizes),
      (error) => discarded.push(`sizes of ${service.name}: ${error.message}`),
    );
  }
  return figures;
}

/** Checks a revision out into a temporary folder. Null if it is not wanted or does not exist. */
async function checkOutParent(revision: string | null, atEnd: AtEnd) {
  if (revision === null) return null;
  const folder = await Deno.makeTempDir({ prefix: "payments-parent-" });
  atEnd(() => Deno.remove(folder, { recursive: true }));
  const run = async (command: string, ...args: string[]) => {
    const { success, stdout } = await new Deno.Command(command, { args, cwd: PROJECT_DIR })
      .output();
    return success ? new TextDecoder().decode(stdout).trim() : null;
  };
  const commit = await run("git", "rev-parse", "--short=8", "--verify", `${revision}^{commit}`);
  const archive = `${folder}/parent.tar`;
  if (commit === null || await run("git", "archive", `--output=${archive}`, commit) === null) {
    console.error(`NOT MEASURED: there is no commit ${revision}`);
    return null;
  }
  await run("tar", "--extract", `--file=${archive}`, `--directory=${folder}`);
  return { folder, commit };
}
