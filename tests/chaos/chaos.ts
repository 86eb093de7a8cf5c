/**
 * `deno task chaos`: kills processes and breaks connections while clients use the API, and prints
 * for each promise (docs/reliability.md) whether it held. The plan depends on the seed only. Exit
 * codes: 0 if every promise held and every kind of fault happened, 1 if not, 2 for wrong arguments.
 */

import { parseArgs } from "node:util";
import type { Verdict } from "./evidence.ts";
import { runBank } from "./bank_run.ts";
import { runChain } from "./chain_run.ts";
import { runHostile } from "./hostile_run.ts";
import { KILL_POINTS } from "./live_faults.ts";
import { runLive } from "./live_run.ts";
import { type MainRunReport, runMain } from "./main_run.ts";
import { isCutOff } from "./meanwhile.ts";
import { runMoves } from "./moves_run.ts";
import { runOutage } from "./outage_run.ts";
import { setStage, type Stage } from "./stage.ts";
import { runSandboxes } from "./sandbox_run.ts";

const USAGE = `Usage: deno task chaos [--seed N] [--ops N] [--kills N] [--clients N] [--promise rN]
       deno task chaos --live [--operations N] [--kills N] [--seed N]

  --seed        decides operations, duplicates, faults and kills; random by default
  --ops         operations of the main run (5000)
  --kills       kills in the main run (10), and in the live run, at least ${KILL_POINTS.length} there
  --clients     stories that run at the same time (64)
  --promise     main (R1 to R8), r8, r13, r15, live, chain and bank (R14), r16, or several, with
                commas; by default all but r16
  --live        only the live run
  --operations  operations of the live run; by default a tenth of --ops, and 300 to 10000
`;

/** The command line. */
interface ChaosOptions {
  seed: number;
  operations: number;
  kills: number;
  clients: number;
  live_operations: number;
  promises: string[];
}

const BREACHES_SHOWN = 10;
/** From this number of operations on, each run has its full size. */
const FULL_SIZE = 100_000;
/** A run. It calls `onCalm` when it only waits. */
type Run = (stage: Stage, options: ChaosOptions, onCalm: () => void) => Promise<Verdict[]>;

/** The runs, by their names for `--promise`. */
const RUNS: Record<string, Run> = {
  main: async (stage, options, onCalm) => judgeMain(await runMain(stage, { ...options, onCalm })),
  r8: (stage, { operations }) => {
    const is_real = operations >= FULL_SIZE;
    return runOutage(stage, { backlog: is_real ? operations : operations / 5, is_real });
  },
  r13: (stage, { operations }) => runHostile(stage, scaled(operations, 3, 15)),
  r15: (stage, { kills }) => runSandboxes(stage, kills >= 20 ? 20 : 3),
  live: (stage, { seed, live_operations: operations, kills }) =>
    runLive(stage, { seed, operations, kills: Math.max(kills, KILL_POINTS.length) }),
  chain: (stage, { seed, operations, kills }) =>
    runChain(stage, { seed, payments: scaled(operations, 60, 900), kills: kills >= 20 ? 20 : 3 }),
  bank: (stage, { seed, operations, kills }) =>
    runBank(stage, { seed, days: scaled(operations, 4, 60), kills: kills >= 20 ? 10 : 1 }),
  r16: (stage, { seed, operations, kills }) =>
    runMoves(stage, {
      seed,
      payments: operations >= FULL_SIZE ? operations : operations / 20,
      kills: kills >= 20 ? 6 : 0,
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
  console.log(`seed ${options.seed}, commit ${await commit()}, ${new Date().toISOString()}`);
  const broken: string[] = [];
  const stages = new Set<Stage>();
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    Deno.addSignalListener(signal, () => {
      // PostgreSQL has its own process group and would not end with this process.
      Promise.all([...stages].map((stage) => stage.end())).then(() => Deno.exit(130));
    });
  }
  const play = async (name: string, onCalm: () => void) => {
    const started = performance.now();
    const stage = await setStage();
    stages.add(stage);
    try {
      const verdicts = await RUNS[name]!(stage, options, onCalm);
      const seconds = ((performance.now() - started) / 1_000).toFixed(1);
      console.log([...verdicts.map(render), `       ${name}: ${seconds} s`].join("\n"));
      // Once more at the end, where a log that is cut off still has it.
      for (const { promise, breaches } of verdicts) {
        if (breaches.length > 0) broken.push(`${name} ${promise}: ${breaches[0]}`);
      }
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
  let before: Promise<void> = Promise.resolve();
  const playing: Promise<void>[] = [];
  for (const name of options.promises) {
    await before;
    const calm = Promise.withResolvers<void>();
    const played = play(name, calm.resolve);
    playing.push(played);
    before = Promise.race([calm.promise, played]);
  }
  await Promise.all(playing);
  for (const breach of broken) console.log(`broken ${breach}`);
  const is_good = broken.length === 0;
  console.log(is_good ? "Every promise held" : `Broken: repeat it with --seed ${options.seed}`);
  return is_good ? 0 : 1;
}

function render({ promise, says, breaches }: Verdict): string {
  const more = breaches.length > BREACHES_SHOWN
    ? [`       and ${breaches.length - BREACHES_SHOWN} more`]
    : [];
  return [
    `${breaches.length === 0 ? "ok    " : "BROKEN"} ${promise.padEnd(4)} ${says}`,
    ...breaches.slice(0, BREACHES_SHOWN).map((breach) => `       ${breach}`),
    ...more,
  ].join("\n");
}

/** The verdicts of the main run, with its figures. Each kind of fault must have happened. */
function judgeMain(report: MainRunReport): Verdict[] {
  const { verdicts, faults, recoveries, counts, seconds, redelivered } = report;
  const missing = Object.entries(faults).filter(([, count]) => count === 0);
  const slowest = Object.entries(recoveries).map(([victim, ms]) =>
    `${victim} ${Math.round(Math.max(0, ...ms))} ms`
  );
  return [
    ...verdicts,
    {
      promise: "load",
      says: `${counts.requests} requests in ${seconds.told.toFixed(1)} s, ` +
        `${counts.broken} broken off, ${counts.unavailable} times 503, ` +
        `${counts.in_progress} responses "in progress" to duplicates, slowest response ` +
        `${Math.round(counts.slowest_ms)} ms; last delivery ${
          seconds.delivered.toFixed(1)
        } s later, ${redelivered} redelivered`,
      breaches: [],
    },
    {
      promise: "kill",
      says: Object.entries(faults).map(([kind, count]) => `${kind} ${count}`).join(", "),
      breaches: missing.map(([kind]) => `no ${kind} happened; a larger run has every kind`),
    },
    { promise: "well", says: `longest recovery: ${slowest.join(", ")}`, breaches: [] },
  ];
}

function readOptions(args: readonly string[]): ChaosOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      seed: { type: "string" },
      ops: { type: "string", default: "5000" },
      kills: { type: "string", default: "10" },
      clients: { type: "string", default: "64" },
      promise: { type: "string" },
      live: { type: "boolean", default: false },
      operations: { type: "string" },
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
  const usual = Object.keys(RUNS).filter((name) => name !== "r16").join(",");
  const named = values.live ? "live" : values.promise ?? usual;
  const promises = named.toLowerCase().split(",");
  const unknown = promises.find((name) => !Object.hasOwn(RUNS, name));
  if (unknown !== undefined) throw new UsageError(`--promise "${unknown}" is unknown`);
  const operations = number("ops", values.ops);
  return {
    seed: number("seed", values.seed ?? String(Math.floor(Math.random() * 1e9))),
    operations,
    kills: number("kills", values.kills),
    clients: number("clients", values.clients),
    live_operations: values.operations === undefined
      ? scaled(operations, 300, 10_000)
      : number("operations", values.operations),
    promises,
  };
}

async function commit(): Promise<string> {
  try {
    const { stdout } = await new Deno.Command("git", { args: ["rev-parse", "--short", "HEAD"] })
      .output();
    return new TextDecoder().decode(stdout).trim() || "unknown";
  } catch {
    return "unknown";
  }
}
