/**
 * `deno task chaos`: kills processes and breaks connections while clients use the API, and prints
 * for each promise (docs/reliability.md) whether it held. The plan depends on the seed only. Exit
 * codes: 0 if every promise held and every kind of fault happened, 1 if not, 2 for wrong arguments.
 */

import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import type { Verdict } from "./harness/audit.ts";
import { isCutOff } from "./harness/killer.ts";
import { setStage, type Stage } from "./harness/stage.ts";
import { readCommit } from "../../tools/git.ts";
import { runBank } from "./worlds/banks/run.ts";
import { KILL_POINTS } from "./worlds/cards/faults.ts";
import { runCards } from "./worlds/cards/run.ts";
import { runChain } from "./worlds/chains/run.ts";
import { runMoves } from "./worlds/moves/run.ts";
import { runHostile } from "./worlds/sandbox/hostile_run.ts";
import { runMain } from "./worlds/sandbox/main_run.ts";
import { runOutage } from "./worlds/sandbox/outage_run.ts";
import { runSandboxes } from "./worlds/sandbox/sandboxes_run.ts";

const KILL_POINT_COUNT = Object.keys(KILL_POINTS).length;
const USAGE = `Usage: deno task chaos [--seed N] [--ops N] [--kills N] [--clients N] [--promise rN]
       deno task chaos --live [--operations N] [--kills N] [--seed N]
       deno task chaos --full [--write] [--seed N]

  --seed        decides operations, duplicates, faults and kills; random by default
  --ops         operations of the main run (5000)
  --kills       kills in the main run (10), and in the live run, at least ${KILL_POINT_COUNT} there
  --clients     stories that run at the same time (64)
  --promise     main (R1 to R8), r8, r13, r15, live, chain and bank (R14), r16, or several, with
                commas; by default all but r16
  --live        only the live run
  --operations  operations of the live run; by default a tenth of --ops, and 300 to 10000
  --full        every run at its full size: 100000 operations and 200 kills
  --write       writes each run to tests/chaos/last_runs.md when it ends
`;

interface ChaosOptions {
  seed: number;
  operations: number;
  kills: number;
  clients: number;
  live_operations: number;
  promises: string[];
  is_written: boolean;
  /** The arguments that decide the sizes of the runs, as they were given. */
  sizes: string;
}

interface Judged {
  run: string;
  seconds: number;
  verdicts: Verdict[];
}

const PAGE = fileURLToPath(import.meta.resolve("./last_runs.md"));
const ROOT = fileURLToPath(import.meta.resolve("../../"));
const BREACHES_SHOWN = 10;

/** From this number of operations on, each run has its full size. */
const FULL_SIZE = 100_000;
/** From this number of kills on, the runs of single promises have their full number. */
const MANY_KILLS = 20;
type Run = (stage: Stage, options: ChaosOptions) => Promise<Verdict[]>;

const RUNS: Record<string, Run> = {
  main: runMain,
  r8: (stage, { operations }) => {
    const is_real = operations >= FULL_SIZE;
    return runOutage(stage, { backlog: is_real ? operations : operations / 5, is_real });
  },
  r13: (stage, { operations }) => runHostile(stage, scaled(operations, 3, 15)),
  r15: (stage, { kills }) => runSandboxes(stage, kills >= MANY_KILLS ? 20 : 3),
  live: (stage, { seed, live_operations: operations, kills }) =>
    runCards(stage, { seed, operations, kills: Math.max(kills, KILL_POINT_COUNT) }),
  chain: (stage, { seed, operations, kills }) => {
    const payments = scaled(operations, 60, 900);
    return runChain(stage, { seed, payments, kills: kills >= MANY_KILLS ? 20 : 3 });
  },
  bank: (stage, { seed, operations, kills }) => {
    const days = scaled(operations, 4, 60);
    return runBank(stage, { seed, days, kills: kills >= MANY_KILLS ? 10 : 1 });
  },
  r16: (stage, { seed, operations, kills }) => {
    // Without the pause, the payments of a long run outnumber those it begins with.
    const [payments, pause_ms] = operations >= FULL_SIZE ? [operations, 100] : [operations / 20, 0];
    return runMoves(stage, { seed, payments, kills: kills >= MANY_KILLS ? 6 : 0, pause_ms });
  },
};

function scaled(operations: number, least: number, full: number): number {
  return Math.round(Math.max(least, Math.min(full, full * operations / FULL_SIZE)));
}

if (import.meta.main) Deno.exit(await main(Deno.args));

async function main(args: readonly string[]): Promise<number> {
  let options: ChaosOptions;
  try {
    options = readOptions(args);
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${USAGE}`);
    return 2;
  }
  const { seed, is_written, sizes } = options;
  const [now, commit] = [new Date().toISOString(), await readCommit(ROOT)];
  console.log(`seed ${seed}, commit ${commit}, ${now}`);
  const judged = await playAll(options, async (judged) => {
    console.log(renderRun(judged));
    if (!is_written) return;
    const args = `--seed ${seed} --promise ${judged.run} ${sizes}`.trim();
    await writePage(judged, `\`${args}\` | ${commit} | ${now.slice(0, 10)}`);
  });
  // Once more at the end, where a log that is cut off still has it.
  const broken = judged.flatMap(({ run, verdicts }) =>
    verdicts.filter(({ breaches }) => breaches.length > 0)
      .map(({ promise, breaches }) => `broken ${run} ${promise}: ${breaches[0]}`)
  );
  for (const breach of broken) console.log(breach);
  console.log(broken.length === 0 ? "Every promise held" : `Broken: repeat it with --seed ${seed}`);
  return broken.length === 0 ? 0 : 1;
}

/** Plays each run on a stage of its own, and tells its verdicts when it ends. */
async function playAll(
  options: ChaosOptions,
  onEnd: (judged: Judged) => Promise<void>,
): Promise<Judged[]> {
  let stage: Stage | null = null;
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    Deno.addSignalListener(signal, () => {
      // PostgreSQL has its own process group and would not end with this process.
      Promise.resolve(stage?.end()).then(() => Deno.exit(130));
    });
  }
  // The driver can write once more to the connection of a server that was killed, and connects
  // again for nobody's query while the server recovers.
  globalThis.addEventListener("unhandledrejection", (event) => {
    const is_ended = /ended by the other party/.test(event.reason?.message);
    if (is_ended || isCutOff(event.reason)) event.preventDefault();
  });
  const all: Judged[] = [];
  for (const run of options.promises) {
    const started = performance.now();
    stage = await setStage();
    try {
      const verdicts = await RUNS[run]!(stage, options);
      const judged = { run, seconds: (performance.now() - started) / 1_000, verdicts };
      await onEnd(judged);
      all.push(judged);
    } finally {
      await stage.end();
    }
  }
  return all;
}

function readOptions(args: readonly string[]): ChaosOptions {
  const text = { type: "string" } as const;
  const flag = { type: "boolean", default: false } as const;
  const { values } = parseArgs({
    args: [...args],
    options: {
      ...{ seed: text, ops: text, kills: text, clients: text, promise: text, operations: text },
      ...{ live: flag, full: flag, write: flag },
    },
    strict: true,
  });
  const number = (name: "seed" | "ops" | "kills" | "clients" | "operations", usual: number) => {
    const text = values[name] ?? String(Math.round(usual));
    if (/^\d{1,9}$/.test(text)) return Number(text);
    throw new Error(`--${name} "${text}" is not a whole number`);
  };
  if (values.live && values.promise !== undefined) {
    throw new Error("--live is one promise: leave --promise out");
  }
  // A move waits for 20 s until no request is left, and tests/cells/move_test.ts makes one.
  const usual = Object.keys(RUNS).filter((name) => values.full || name !== "r16").join(",");
  const promises = (values.live ? "live" : values.promise ?? usual).toLowerCase().split(",");
  const unknown = promises.find((name) => !Object.hasOwn(RUNS, name));
  if (unknown !== undefined) throw new Error(`--promise "${unknown}" is unknown`);
  const operations = number("ops", values.full ? FULL_SIZE : 5_000);
  const sizes = (["ops", "kills", "operations"] as const)
    .flatMap((name) => values[name] === undefined ? [] : [`--${name} ${values[name]}`]);
  return {
    seed: number("seed", Math.floor(Math.random() * 1e9)),
    operations,
    kills: number("kills", values.full ? 200 : 10),
    clients: number("clients", 64),
    live_operations: number("operations", scaled(operations, 300, 10_000)),
    promises,
    is_written: values.write,
    sizes: [...(values.full ? ["--full"] : []), ...sizes].join(" "),
  };
}

function renderRun({ run, seconds, verdicts }: Judged): string {
  const lines = verdicts.flatMap(({ promise, says, breaches }) => {
    const more = breaches.length - BREACHES_SHOWN;
    return [
      `${breaches.length === 0 ? "ok    " : "BROKEN"} ${promise.padEnd(4)} ${says}`,
      ...breaches.slice(0, BREACHES_SHOWN).map((breach) => `       ${breach}`),
      ...(more > 0 ? [`       and ${more} more`] : []),
    ];
  });
  return [...lines, `       ${run}: ${seconds.toFixed(1)} s`].join("\n");
}

/**
 * Writes a run to both tables of the page. It replaces the last one of the same name.
 * @param told the command that repeats it, the commit and the day, as cells
 */
async function writePage({ run, seconds, verdicts }: Judged, told: string): Promise<void> {
  const page = (await Deno.readTextFile(PAGE)).trimEnd().split("\n")
    .filter((line) => !new RegExp(`^\\| ${run} *\\|`).test(line));
  const row = `| ${run} | ${told} | ${availableParallelism()} | ${Math.round(seconds)} |`;
  page.splice(page.lastIndexOf(""), 0, row);
  for (const { promise, says, breaches } of verdicts) {
    page.push(`| ${run} | ${promise} | ${breaches.length === 0 ? "yes" : "**no**"} | ${says} |`);
  }
  await Deno.writeTextFile(PAGE, page.join("\n") + "\n");
  const format = new Deno.Command(Deno.execPath(), { args: ["fmt", "--quiet", PAGE], cwd: ROOT });
  if (!(await format.output()).success) throw new Error(`${PAGE} cannot be formatted`);
}
