/** Waits for sessions that wait for a lock. */

import type postgres from "postgres";
import { openSession } from "./database.ts";
import { until } from "../common/until.ts";

/**
 * Waits until sessions of this database wait for a lock. Call it outside a transaction: within one,
 * PostgreSQL always returns the first state of the sessions.
 * @param options.sessions the minimum number of waiting sessions
 * @param options.calls the function that the sessions call; any statement by default
 */
export async function untilWaiting(
  sql: postgres.Sql,
  { sessions = 1, calls }: { sessions?: number; calls?: string } = {},
): Promise<void> {
  const query = calls === undefined ? "%" : `%${calls}(%`;
  await until(`${sessions} sessions wait for a lock`, async () => {
    const waiting = await sql`select from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock' and query like ${query}`;
    return waiting.length >= sessions;
  }, 10_000);
}

/**
 * Begins work while another session holds the locks of a statement, and releases them when every
 * piece of the work waits. Returns the results.
 */
export async function behindLock<T>(
  sql: postgres.Sql,
  lock: string,
  begin: () => Promise<T>[],
  calls: string,
): Promise<T[]> {
  await using holder = await openSession(sql);
  await holder`begin`;
  await holder.unsafe(lock);
  const works = begin();
  await untilWaiting(sql, { sessions: works.length, calls });
  await holder`commit`;
  return await Promise.all(works);
}
