/** Returns the content of the database as one text, which tests search. */

import type postgres from "postgres";

/** A connection that sees every row: a test service has one. */
interface Database {
  sql: postgres.Sql;
}

/** Returns every row of every table as text. */
export async function dumpTables({ sql }: Database): Promise<string> {
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
