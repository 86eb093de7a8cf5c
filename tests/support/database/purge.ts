/** Runs retention as its job does. */

import type postgres from "postgres";

/**
 * Deletes in batches until nothing is left to delete, by the clock of the database.
 * @returns the number of calls
 */
export async function purgeAll(sql: postgres.Sql, batch = 1000): Promise<number> {
  for (let calls = 1;; calls++) {
    const [row] = await sql`
      select pay.purge(pay_internal.server_time(), ${batch})::int as rows`;
    if (row!.rows === 0) return calls;
  }
}
