/** What a statement costs, in pages of tables and indexes. */

import type { Sql } from "postgres";

/** Runs a statement and counts the pages that it reads, inside of functions too, cached or not. */
export async function pagesRead(sql: Sql, query: string, parameters: string[]): Promise<number> {
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
