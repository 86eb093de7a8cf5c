/** Counts the pages and rows of our tables that a statement reads. */

import type { ISql, ReservedSql, Sql } from "postgres";
import { until } from "../common/until.ts";

/** The reads of our tables, their TOAST tables and indexes. */
interface Reading {
  /** Rows from index scans and sequential scans, visible or not. */
  rows: number;
  /** Pages, cached or not. */
  pages: number;
}

/** Runs a statement in a transaction of its own, and counts what it reads, also in functions. */
export async function pagesRead(
  sql: ReservedSql,
  query: string,
  parameters: (string | null)[],
): Promise<number> {
  await sql`begin`;
  try {
    const { pages } = await readsOf(sql, query, parameters);
    await sql`commit`;
    return pages;
  } catch (error) {
    await sql`rollback`;
    throw error;
  }
}

/**
 * Removes the deleted rows of a table, which scans of an index read until then. VACUUM keeps those
 * that an older snapshot sees, for example that of an automatic ANALYZE.
 */
export async function removeDeletedRows(sql: Sql, table: string): Promise<void> {
  await until("no transaction has an older snapshot", async () => {
    const older = await sql`select from pg_stat_activity
      where datname = current_database() and backend_xmin is not null
        and pid <> pg_backend_pid()`;
    return older.length === 0;
  }, 10_000);
  await sql`vacuum ${sql(table)}`;
}

/**
 * Runs a statement, counts what it reads, also inside functions, and undoes it. PostgreSQL does not
 * count index entries that a scan skips, but it counts their pages.
 * @param prepare makes the state for it, in the same transaction
 */
export async function rowsRead(
  sql: ReservedSql,
  query: string,
  parameters: (string | null)[],
  prepare: () => Promise<unknown> = () => Promise.resolve(),
): Promise<Reading> {
  await sql`begin`;
  try {
    await prepare();
    return await readsOf(sql, query, parameters);
  } finally {
    await sql`rollback`;
  }
}

async function readsOf(sql: ISql, query: string, parameters: (string | null)[]): Promise<Reading> {
  const before = await readsOfTransaction(sql);
  await sql.unsafe(query, parameters, { prepare: true });
  const after = await readsOfTransaction(sql);
  return { rows: after.rows - before.rows, pages: after.pages - before.pages };
}

/**
 * Returns what the open transaction has read so far. Pages of the catalogue are not counted: how
 * many a session reads depends on its caches, which any change in any database can empty.
 */
export async function readsOfTransaction(sql: ISql): Promise<Reading> {
  // These counters contain only values that the connection has not reported yet; it reports between
  // transactions.
  const [counted] = await sql<Reading[]>`
    with own as (
      select oid, reltoastrelid from pg_class
      where relnamespace = 'pay'::regnamespace and relkind in ('r', 'i')
    ), relations as (
      select oid from own
      union all select reltoastrelid from own where reltoastrelid <> 0
      union all select indexrelid from own join pg_index on indrelid = reltoastrelid
    )
    select sum(pg_stat_get_xact_tuples_returned(oid))::int as rows,
      sum(pg_stat_get_xact_blocks_fetched(oid))::int as pages
    from relations`;
  return counted!;
}
