/**
 * `deno task chaos`: kills processes and breaks connections while clients use the API, and prints
 * for each promise (docs/reliability.md) whether it held. The plan depends on the seed only. Exit
 * codes: 0 if every promise held and every kind of fault happened, 1 if not, 2 for wrong arguments.
 */

import { parseArgs } from "node:util";
import type { Verdict } from "./harness/audit.ts";
import { setStage, type Stage } from "./harness/stage.ts";
import { readCommit } from "../../tools/git.ts";
import { type Judged, renderRun, ROOT, writePage } from "./report.ts";
import { runBank } from "./worlds/banks/run.ts";
import { KILL_POINTS } from "./worlds/cards/faults.ts";
import { runCards } from "./worlds/cards/run.ts";
import { runChain } from "./worlds/chains/run.ts";
import { runMoves } from "./worlds/moves/run.ts";
import { runHostile } from "./worlds/sandbox/hostile_run.ts";
import { runMain } from "./worlds/sandbox/main_run.ts";
import { isCutOff } from "./worlds/sandbox/meanwhile.ts";
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

/** The command line. */
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

/** From this number of operations on, each run has its full size. */
const FULL_SIZE = 100_000;
const FULL = { ops: String(FULL_SIZE), kills: "200" };
/** From this number of kills on, the runs of single promises have their full number. */
const MANY_KILLS = 20;
/** A run. It calls `onCalm` when it only waits. */
type Run = (stage: Stage, options: ChaosOptions, onCalm: () => void) => Promise<Verdict[]>;

/** The runs, by their names for `--promise`. */
const RUNS: Record<string, Run> = {
  main: (stage, options, onCalm) => runMain(stage, { ...options, onCalm }),
  r8: (stage, { operations }) => {
    const is_real = operations >= FULL_SIZE;
    return runOutage(stage, { backlog: is_real ? operations : operations / 5, is_real });
  },
  r13: (stage, { operations }) => runHostile(stage, scaled(operations, 3, 15)),
  r15: (stage, { kills }) => runSandboxes(stage, kills >= MANY_KILLS ? 20 : 3),
  live: (stage, { seed, live_operations: operations, kills }) =>
    runCards(stage, { seed, operations, kills: Math.max(kills, KILL_POINT_COUNT) }),
  chain: (stage, { seed, operations, kills }) =>
    runChain(stage, {
      ...{ seed, payments: scaled(operations, 60, 900), kills: kills >= MANY_KILLS ? 20 : 3 },
    }),
  bank: (stage, { seed, operations, kills }) =>
    runBank(stage, {
      ...{ seed, days: scaled(operations, 4, 60), kills: kills >= MANY_KILLS ? 10 : 1 },
    }),
  r16: (stage, { seed, operations, kills }) =>
    runMoves(stage, {
      seed,
      payments: operations >= FULL_SIZE ? operations : operations / 20,
      kills: kills >= MANY_KILLS ? 6 : 0,
      // Otherwise the payments of a long run outnumber those it begins with.
      pause_ms: operations >= FULL_SIZE ? 100 : 0,
    }),
};

/** A size between `least` and `full`, in proportion to the operations. */
function scaled(operations: number, least: number, full: number): number {
  return Math.round(Math.max(least, Math.min(full, full * operations / FULL_SIZE)));
}

class UsageError extends Error {}

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
    const args = `--seed ${seed} --promise ${judged.run} ${sizes}`.trim();
    if (is_written) await writePage(judged, { args, commit, day: now.slice(0, 10) });
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
  const stages = new Set<Stage>();
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    Deno.addSignalListener(signal, () => {
      // PostgreSQL has its own process group and would not end with this process.
      Promise.all([...stages].map((stage) => stage.end())).then(() => Deno.exit(130));
    });
  }
  const play = async (run: string, onCalm: () => void): Promise<Judged> => {
    const started = performance.now();
    const stage = await setStage();
    stages.add(stage);
    try {
      const verdicts = await RUNS[run]!(stage, options, onCalm);
      const judged = { run, seconds: (performance.now() - started) / 1_000, verdicts };
      await onEnd(judged);
      return judged;
    } finally {
      await stage.end();
      stages.delete(stage);
    }
  };
  // The driver can write once more to the connection of a server that was killed, and connects again
  // for nobody's query while the server recovers.
  globalThis.addEventListener("unhandledrejection", (event) => {
    const is_ended = /ended by the other party/.test(event.reason?.message);
    if (is_ended || isCutOff(event.reason)) event.preventDefault();
  });
  // The next run starts while the main run only waits for its last deliveries.
  let before: Promise<unknown> = Promise.resolve();
  const playing: Promise<Judged>[] = [];
  for (const run of options.promises) {
    await before;
    const calm = Promise.withResolvers<void>();
    const played = play(run, calm.resolve);
    playing.push(played);
    before = Promise.race([calm.promise, played]);
  }
  return await Promise.all(playing);
}

function readOptions(args: readonly string[]): ChaosOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      seed: { type: "string" },
      ops: { type: "string" },
      kills: { type: "string" },
      clients: { type: "string", default: "64" },
      promise: { type: "string" },
      live: { type: "boolean", default: false },
      operations: { type: "string" },
      full: { type: "boolean", default: false },
      write: { type: "boolean", default: false },
    },
    strict: true,
  });
  const number = (name: string, text: string) => {
    if (/^\d{1,9}$/.test(text)) return Number(text);
    throw new UsageError(`--${name} "${text}" is not a whole number`);
  };
  if (values.live && values.promise !== undefined) {
    throw new UsageError("--live is one promise: leave --promise out");
  }
  // A move waits for 20 s until no request is left, and tests/cells/move_test.ts makes one.
  const usual = Object.keys(RUNS).filter((name) => values.full || name !== "r16").join(",");
  const named = values.live ? "live" : values.promise ?? usual;
  const promises = named.toLowerCase().split(",");
  const unknown = promises.find((name) => !Object.hasOwn(RUNS, name));
  if (unknown !== undefined) throw new UsageError(`--promise "${unknown}" is unknown`);
  const sizes = values.full ? FULL : { ops: "5000", kills: "10" };
  const operations = number("ops", values.ops ?? sizes.ops);
  return {
    seed: number("seed", values.seed ?? String(Math.floor(Math.random() * 1e9))),
    operations,
    kills: number("kills", values.kills ?? sizes.kills),
    clients: number("clients", values.clients),
    live_operations: values.operations === undefined
      ? scaled(operations, 300, 10_000)
      : number("operations", values.operations),
    promises,
    is_written: values.write,
    sizes: [
      values.full ? "--full" : "",
      ...(["ops", "kills", "operations"] as const).map((name) =>
        values[name] === undefined ? "" : `--${name} ${values[name]}`
      ),
    ].filter((argument) => argument !== "").join(" "),
  };
}
