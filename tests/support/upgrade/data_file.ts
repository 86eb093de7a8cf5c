/**
 * Writes the rows of every table of the service as SQL statements, and runs them in a database with
 * the same schema.
 */

import type { Sql } from "postgres";

/** Returns statements that insert the rows of all logged tables. */
export async function dumpRows(sql: Sql): Promise<string> {
  const statements: string[] = [];
  for (const { name, columns } of await listTables(sql)) {
    const rows = await sql.unsafe(
      `select row_to_json(t)::text as row from (select ${columns} from pay.${name}) t order by 1`,
    );
    if (rows.length === 0) continue;
    statements.push(
      `insert into pay.${name} (${columns}) select ${columns}\n` +
        `from json_populate_recordset(null::pay.${name}, '[\n` +
        `${rows.map(({ row }) => row.replaceAll("'", "''")).join(",\n")}\n]');\n`,
    );
  }
  return statements.join("\n");
}

/** Runs such statements. No trigger fires and no foreign key is checked, so any order works. */
export async function loadRows(sql: Sql, text: string): Promise<void> {
  await sql.begin(async (transaction) => {
    await transaction`set local session_replication_role = replica`;
    await transaction.unsafe(text).simple();
  });
}

/** Returns the logged tables, each with the columns that are not generated. */
async function listTables(sql: Sql): Promise<{ name: string; columns: string }[]> {
  return await sql<{ name: string; columns: string }[]>`
    select c.relname as name,
      string_agg(quote_ident(a.attname), ', ' order by a.attnum) as columns
    from pg_class c
    join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
      and a.attgenerated = ''
    where c.relnamespace = 'pay'::regnamespace and c.relkind in ('r', 'p')
      and c.relpersistence = 'p' and not c.relispartition
    group by c.relname
    order by c.relname collate "C"`;
}
