/** Counts the pages and rows that a statement reads. */

import type { ISql, ReservedSql, Sql } from "postgres";
import { until } from "../common/until.ts";

/** Runs a statement and counts the pages that it reads, cached or not, also inside functions. */
export async function pagesRead(
  sql: Sql,
  query: string,
  parameters: (string | null)[],
): Promise<number> {
  const plan = await sql.unsafe<{ "QUERY PLAN": string }[]>(
    `explain (analyze, buffers) ${query}`,
    parameters,
    { prepare: true },
  );
  const text = plan.map((line) => line["QUERY PLAN"]).join("\n");
  const [whole] = text.match(/Buffers: shared.*/) ?? [];
  if (whole === undefined) throw new Error(`A plan without buffers:\n${text}`);
  const count = (kind: string) => Number(new RegExp(` ${kind}=(\\d+)`).exec(whole)?.[1] ?? 0);
  return count("hit") + count("read");
}

/**
 * Repeats a read, and returns the fewest pages. Changes of other databases can empty the caches of a
 * session, which then reads its catalogue again.
 */
export async function fewestPages(read: () => Promise<number>): Promise<number> {
  return Math.min(await read(), await read(), await read());
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
 * The reads of a statement: rows from index scans and sequential scans, visible or not, and pages.
 */
interface Reading {
  rows: number;
  pages: number;
}

/**
 * Runs a statement and counts the rows of our tables that it reads, also inside functions: entries
 * that index scans return and rows of sequential scans. PostgreSQL does not count index entries
 * that a scan skips, but it counts their pages. Undoes the statement.
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
    const before = await rowsOfTransaction(sql);
    const pages = await pagesRead(sql, query, parameters);
    return { rows: await rowsOfTransaction(sql) - before, pages };
  } finally {
    await sql`rollback`;
  }
}

/** Counts the rows of our tables that the open transaction has read, as `rowsRead` does. */
export async function rowsOfTransaction(sql: ISql): Promise<number> {
  // These counters contain only values that the connection has not reported yet; it reports between
  // transactions.
  const [counted] = await sql<{ rows: number }[]>`
    select sum(pg_stat_get_xact_tuples_returned(c.oid))::int as rows
    from pg_class c
    where c.relnamespace = 'pay'::regnamespace and c.relkind in ('r', 'i')`;
  return counted!.rows;
}
