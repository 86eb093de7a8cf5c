/**
 * The tables can be distributed over machines by `environment_id`: the statements in
 * docs/operations.md name the tables that every machine copies, and every key of the other tables
 * begins with that column.
 */

import assert from "node:assert/strict";
import postgres from "postgres";
import { cloneDatabase } from "../support/database/database.ts";
import { block } from "../support/documents/operations_document.ts";

const COLUMN = "environment_id";

/** Keys of distributed tables that do not begin with the column. The query must find none. */
const OTHER_KEYS = `
  select conname as name from pg_constraint c
  join pg_attribute a on a.attrelid = c.conrelid and a.attnum = c.conkey[1]
  where c.conrelid = any ($1::text[]::regclass[]) and c.contype in ('p', 'u', 'f', 'x')
    and a.attname <> '${COLUMN}'
  union all
  select conname from pg_constraint c
  join pg_attribute a on a.attrelid = c.confrelid and a.attnum = c.confkey[1]
  where c.conrelid = any ($1::text[]::regclass[]) and c.confrelid = any ($1::text[]::regclass[])
    and a.attname <> '${COLUMN}'
  union all
  select indexrelid::regclass::text from pg_index i
  join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[0]
  where i.indrelid = any ($1::text[]::regclass[]) and i.indisunique and a.attname <> '${COLUMN}'
  union all
  select t::regclass::text from unnest($1::text[]) t
  where not exists (select from pg_constraint where conrelid = t::regclass and contype = 'p')`;

/** Changes that the query must find. */
const VIOLATIONS = [
  "alter table pay.refunds add unique (id)",
  "alter table pay.refunds add unique (id, environment_id)",
  "create unique index on pay.events (id, environment_id)",
  "alter table pay.payments drop constraint payments_pkey",
  `alter table pay.refunds add foreign key (payment_id, environment_id)
     references pay.payments (id, environment_id)`,
];

Deno.test("the tables can be distributed by environment_id", async (t) => {
  const database = await cloneDatabase();
  const sql = postgres(database.url, { max: 1, onnotice: () => {} });
  try {
    const statements = await block("Beyond one machine", "sql");
    const copied = [...statements.matchAll(/create_reference_table\('(pay\.\w+)'/g)]
      .map(([, name]) => name!);
    const rows = await sql<{ name: string }[]>`
      select 'pay.' || tablename as name from pg_tables where schemaname = 'pay'`;
    const tables = rows.map(({ name }) => name);
    const spread = tables.filter((name) => !copied.includes(name));
    await t.step("docs/operations.md names only tables that exist", () => {
      assert.deepEqual(copied.filter((name) => !tables.includes(name)), []);
      assert.ok(copied.length > 0 && spread.length > copied.length);
    });
    await t.step(`every key of a distributed table begins with ${COLUMN}`, async () => {
      assert.deepEqual([...await sql.unsafe(OTHER_KEYS, [spread])], []);
    });
    for (const violation of VIOLATIONS) {
      await t.step(`the query finds "${violation.split("\n")[0]}"`, async () => {
        const session = await sql.reserve();
        try {
          await session`begin`;
          if (violation.includes("foreign key")) {
            await session`alter table pay.payments add constraint u unique (id, environment_id)`;
          }
          await session.unsafe(violation);
          assert.notEqual((await session.unsafe(OTHER_KEYS, [spread])).length, 0);
        } finally {
          await session`rollback`;
          session.release();
        }
      });
    }
  } finally {
    await sql.end();
    await database.drop();
  }
});
