/**
 * The rows of an environment can be copied, moved and deleted alone: every key of a tenant's table
 * begins with `environment_id`.
 */

import assert from "node:assert/strict";
import postgres from "postgres";
import { cloneDatabase } from "../support/database/database.ts";

const COLUMN = "environment_id";

/** The tables that all tenants share. */
const SHARED = [
  "pay.environments",
  "pay.xpub_counters",
  "pay.signer_nonces",
  "pay.api_keys",
  "pay.api_key_secrets",
  "pay.settings",
  "pay.dispatcher_wakes",
];

/** Keys of tenants' tables that do not begin with the column. The query must find none. */
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

Deno.test("the rows of an environment stand alone", async (t) => {
  const database = await cloneDatabase();
  const sql = postgres(database.url, { max: 1, onnotice: () => {} });
  try {
    const rows = await sql<{ name: string }[]>`
      select 'pay.' || tablename as name from pg_tables where schemaname = 'pay'`;
    const tables = rows.map(({ name }) => name);
    const owned = tables.filter((name) => !SHARED.includes(name));
    await t.step("the shared tables exist", () => {
      assert.deepEqual(SHARED.filter((name) => !tables.includes(name)), []);
      assert.ok(owned.length > SHARED.length);
    });
    await t.step(`every key of a tenant's table begins with ${COLUMN}`, async () => {
      assert.deepEqual([...await sql.unsafe(OTHER_KEYS, [owned])], []);
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
          assert.notEqual((await session.unsafe(OTHER_KEYS, [owned])).length, 0);
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
