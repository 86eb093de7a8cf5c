/**
 * `deno task bank` as a process that is killed at a step. To stop it there, the test holds a lock
 * that the step needs.
 */

import postgres from "postgres";
import { fileURLToPath } from "node:url";
import CONFIG from "../../../deno.json" with { type: "json" };
import type { Stage } from "../../chaos/harness/stage.ts";
import { until } from "../common/until.ts";
import { KEYS } from "./bank.ts";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const LOOK_MS = 20;
const STEP_DEADLINE_MS = 600_000;

/** A running command. */
export interface RunningCommand {
  kill(): void;
  /** Resolves when it has ended. */
  readonly ended: Promise<{ code: number; output: string; errors: string; peak_mb: number }>;
}

/** Starts `deno task bank`, with the flags of the task. */
export function startBankCommand(
  { postgres: { superuser_url } }: Stage,
  ...args: string[]
): RunningCommand {
  const [, ...task] = CONFIG.tasks.bank.split(" ");
  const child = new Deno.Command(Deno.execPath(), {
    args: [...task, ...args],
    cwd: ROOT,
    env: { DATABASE_URL: superuser_url, BANK_DETAILS_KEYS: KEYS },
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  let peak_mb = 0;
  const timer = setInterval(async () => {
    const status = await Deno.readTextFile(`/proc/${child.pid}/status`).catch(() => "");
    const [, peak_kb] = /VmHWM:\s+(\d+)/.exec(status) ?? [];
    peak_mb = Math.max(peak_mb, Number(peak_kb ?? 0) / 1e3);
  }, LOOK_MS);
  const ended = child.output().then(({ code, stdout, stderr }) => {
    clearInterval(timer);
    const [output, errors] = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes));
    return { code, output: output!, errors: errors!, peak_mb };
  });
  return { kill: () => child.kill("SIGKILL"), ended };
}

/** A table that a test has locked. */
interface HeldTable {
  /** Resolves when the command waits for the lock. */
  untilAwaited(): Promise<void>;
  release(): Promise<void>;
}

/**
 * Locks a table, so that nobody writes it. Resolves when the lock is there or, with `is_queued`, is
 * the next one to come.
 */
export async function holdTable(
  stage: Stage,
  table: string,
  mode: "exclusive" | "access exclusive" = "exclusive",
  is_queued = false,
): Promise<HeldTable> {
  const sql = postgres(stage.postgres.superuser_url, { max: 1, onnotice: () => {} });
  const locked = (async () => {
    await sql.unsafe("begin");
    await sql.unsafe(`lock table ${table} in ${mode} mode`);
  })();
  locked.catch(() => {});
  const countWaiting = async () => {
    // Neither the service nor autovacuum, which also wait.
    const [row] = await stage.sql`select count(*)::int as count from pg_locks
      join pg_stat_activity using (pid)
      where not granted and relation = ${table}::regclass and usename = session_user`;
    return row!.count as number;
  };
  if (is_queued) await until(`the lock of ${table} waits`, async () => await countWaiting() > 0);
  else await locked;
  return {
    async untilAwaited() {
      await locked;
      await until(
        `the command waits for ${table}`,
        async () => await countWaiting() > 0,
        STEP_DEADLINE_MS,
      );
    },
    release: () => sql.end({ timeout: 0 }),
  };
}
