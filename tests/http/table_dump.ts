/** All that the database holds, as one text to search in. */

import type { TestService } from "../support/service.ts";

/** Every row of every table as text. */
export async function dumpTables({ sql }: TestService): Promise<string> {
  const tables = await sql<{ name: string }[]>`
    select tablename as name from pg_tables where schemaname = 'pay'`;
  let dump = "";
  for (const { name } of tables) {
    for (const { row } of await sql.unsafe(`select t::text as row from pay.${name} t`)) {
      dump += row + "\n";
    }
  }
  return dump;
}
