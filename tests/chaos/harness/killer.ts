/** Kills processes with SIGKILL: at any time, or while a statement is under way. */

import postgres from "postgres";
import { pause, until } from "../../support/common/until.ts";
import { type ApiServer, HEALTH_MS, type Stage, untilAllWell } from "./stage.ts";

/**
 * Kills one process of PostgreSQL; resolves after the recovery. When one
 * process is killed, PostgreSQL ends all of them and recovers. Until then old processes may still
 * respond. A new checkpointer shows that the recovery is over.
 * @param pid the postmaster by default
 */
export async function killPostgres(
  { sql, postgres }: Stage,
  pid: number = postgres.pid,
): Promise<void> {
  const checkpointer = async () => {
    const [row] = await untilRows(() =>
      sql<{ pid: number }[]>`
        select pid from pg_stat_activity where backend_type = 'checkpointer'`
    );
    return row!.pid;
  };
  const before = await checkpointer();
  Deno.kill(pid, "SIGKILL");
  await until("the database has recovered", async () => await checkpointer() !== before, HEALTH_MS);
}

/** Kills one of the service's backends, which takes all others with it. */
export async function killBackend(stage: Stage, which: number): Promise<void> {
  for (;;) {
    const backends = await untilRows(() =>
      stage.sql<{ pid: number }[]>`
        select pid from pg_stat_activity where application_name = 'payments' order by pid`
    );
    try {
      return await killPostgres(stage, backends[Math.floor(which * backends.length)]!.pid);
    } catch (error) {
      // A proxy has cut its connection meanwhile.
      if (!(error instanceof Deno.errors.NotFound)) throw error;
    }
  }
}

/** Repeats a query while it fails on connections of a killed server, until it has rows. */
export async function untilRows<T>(ask: () => Promise<T[]>): Promise<T[]> {
  let rows: T[] = [];
  await until("the database responds", async () => {
    rows = await ask().catch(() => []);
    return rows.length > 0;
  }, HEALTH_MS);
  return rows;
}

interface StatementPoint {
  table: string;
  text: string;
  wait_ms: number;
}

interface Killed {
  recovered: Promise<unknown>;
  /** Whether the kill has ended the transaction that holds the lock of the point. */
  has_ended_lock: boolean;
}

/**
 * Kills, and resolves when the lock of the point may go.
 * @param pids the backends that wait at the point
 */
export type Kill = (
  stage: Stage,
  servers: readonly ApiServer[],
  sql: postgres.Sql,
  pids: number[],
) => Promise<Killed>;

/** Kills all servers. Their waiting statements do not notice that, and commit. */
export const killServers: Kill = (_, servers) => {
  // restart() sends SIGKILL before it returns.
  const restarted = Promise.all(servers.map((server) => server.restart()));
  const recovered = restarted.then(() => untilAllWell(servers));
  return Promise.resolve({ recovered, has_ended_lock: false });
};

/** Kills all servers, and then their waiting statements. */
export const killServersAndCut: Kill = async (stage, servers, sql, pids) => {
  const killed = await killServers(stage, servers, sql, pids);
  await cutStatements(sql, pids);
  return killed;
};

export const killDatabase: Kill = async (stage, servers) => {
  await killPostgres(stage);
  return { recovered: untilAllWell(servers), has_ended_lock: true };
};

/** Ends statements, which do not notice that their client is dead. */
export async function cutStatements(sql: postgres.Sql, pids: number[]): Promise<void> {
  await sql`select pg_terminate_backend(pid) from unnest(${pids}::int[]) as pid`;
}

/**
 * Kills while a statement waits for a lock of this run, so that it neither commits nor ends. After
 * the kill the lock goes: a statement whose client is dead then commits, and nobody goes on.
 * @param onLocked a statement from now on comes to the point
 * @returns false if no statement came to the point in time
 */
export async function killAtStatement(
  stage: Stage,
  servers: readonly ApiServer[],
  { table, text, wait_ms }: StatementPoint,
  kill: Kill,
  onLocked: () => void = () => {},
): Promise<boolean> {
  const { superuser_url } = stage.postgres;
  const sql = postgres(superuser_url, { max: 2, onnotice: () => {}, backoff: () => 0.1 });
  try {
    const holder = await sql.reserve();
    await holder.unsafe(`begin; lock table pay.${table} in share mode`);
    onLocked();
    let pids: number[] = [];
    await within(wait_ms, async () => {
      const rows = await sql<{ pid: number }[]>`
        select pid from pg_stat_activity
        where wait_event_type = 'Lock' and position(${text} in query) > 0`;
      pids = rows.map(({ pid }) => pid);
      return pids.length > 0;
    });
    const killed = pids.length > 0 ? await kill(stage, servers, sql, pids) : null;
    if (!killed?.has_ended_lock) await holder.unsafe("rollback");
    await killed?.recovered;
    return killed !== null;
  } finally {
    await sql.end({ timeout: 1 }).catch(() => {});
  }
}

/** Waits until a condition holds, but no longer. Returns whether it did. */
export async function within(ms: number, holds: () => Promise<boolean>): Promise<boolean> {
  const give_up_at = performance.now() + ms;
  do {
    if (await holds()) return true;
    await pause(10);
  } while (performance.now() < give_up_at);
  return false;
}

/** Whether a query failed because the database was killed or is still starting. */
export function isCutOff(error: unknown): boolean {
  const code = (error as { code?: string } | null)?.code;
  return code !== undefined && /^(CONNECT|ECONN|EPIPE|08|57P0)/.test(code);
}
