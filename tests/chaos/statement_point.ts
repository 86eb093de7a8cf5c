/** Kills processes while a statement is under way: before it can commit, or before anybody notices. */

import postgres from "postgres";
import type { Stage } from "./stage.ts";

/** A statement that waits for a table. */
export interface StatementPoint {
  table: string;
  /** A part of the statement's text. */
  text: string;
  /** Longest wait for the statement. */
  wait_ms: number;
}

/** A kill that has happened. */
export interface Killed {
  recovered: Promise<unknown>;
  /** Whether the kill has ended the transaction that holds the lock of the point. */
  has_ended_lock: boolean;
}

/**
 * Kills while a statement waits for a lock of this run, so that it neither commits nor ends. After
 * the kill the lock goes: a statement whose client is dead then commits, and nobody goes on.
 *
 * @param kill gets the backends that wait at the point
 * @param onLocked a statement from now on comes to the point
 * @returns false if no statement came to the point in time
 */
export async function killAtStatement(
  { postgres: { superuser_url } }: Stage,
  { table, text, wait_ms }: StatementPoint,
  kill: (sql: postgres.Sql, pids: number[]) => Promise<Killed>,
  onLocked: () => void = () => {},
): Promise<boolean> {
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
    const killed = pids.length > 0 ? await kill(sql, pids) : null;
    if (!killed?.has_ended_lock) await holder.unsafe("rollback");
    await killed?.recovered;
    return killed !== null;
  } finally {
    await sql.end({ timeout: 1 }).catch(() => {});
  }
}

/** Waits until a condition holds, but no longer. Returns whether it did. */
export async function within(
  deadline_ms: number,
  holds: () => Promise<boolean>,
): Promise<boolean> {
  const give_up_at = performance.now() + deadline_ms;
  do {
    if (await holds()) return true;
    await new Promise((resolve) => setTimeout(resolve, 10));
  } while (performance.now() < give_up_at);
  return false;
}
