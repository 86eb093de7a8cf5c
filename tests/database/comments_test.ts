/**
 * Tables, columns and types have comments for people who read them in the database. Functions of the
 * schema `pay` have comments in supabase/schemas. Those of `pay_internal` have one where their name
 * does not say enough.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import postgres from "postgres";
import { SCHEMAS_DIR } from "../../scripts/schema/schema_files.ts";
import { splitStatements } from "../../scripts/schema/sql_statements.ts";
import { cloneDatabase } from "../support/database/database.ts";

/** Each criterion, and a query of the objects that violate it. */
const CRITERIA: [criterion: string, query: string][] = [
  [
    "every table, view and type has a comment",
    `select c.relname as name from pg_class c
     where c.relnamespace in ('pay'::regnamespace, 'pay_internal'::regnamespace) and c.relkind in ('r', 'p', 'v', 'c')
       and coalesce(obj_description(c.oid, 'pg_class'), obj_description(c.reltype, 'pg_type')) is null`,
  ],
  [
    "every column of a table or type has a comment",
    `select c.relname || '.' || a.attname as name
     from pg_class c
     join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
     where c.relnamespace in ('pay'::regnamespace, 'pay_internal'::regnamespace) and c.relkind in ('r', 'p', 'c')
       and col_description(c.oid, a.attnum) is null`,
  ],
  [
    // The other views are the invariants and their parts. All invariants have the same three
    // columns.
    "every column of a view that an operator may read has a comment",
    `select c.relname || '.' || a.attname as name
     from pg_class c
     join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
     where c.relnamespace = 'pay'::regnamespace and c.relkind = 'v' and c.relacl is not null
       and col_description(c.oid, a.attnum) is null`,
  ],
];

for (const [criterion, query] of CRITERIA) {
  Deno.test(criterion, async () => {
    const database = await cloneDatabase();
    const sql = postgres(database.url, { max: 1 });
    try {
      const rows = await sql.unsafe(query);
      assert.deepEqual(rows.map(({ name }) => name).sort(), []);
    } finally {
      await sql.end();
      await database.drop();
    }
  });
}

Deno.test("every function of the schema pay has a comment above it", async () => {
  const silent: string[] = [];
  for await (const { name: file } of Deno.readDir(SCHEMAS_DIR)) {
    for (const { text } of splitStatements(await Deno.readTextFile(join(SCHEMAS_DIR, file)))) {
      // An empty line separates the comment at the top of a file from the first function.
      const name = /(?:^|\n\n)create or replace function pay\.(\w+)/.exec(text)?.[1];
      if (name !== undefined) silent.push(`${file}: ${name}`);
    }
  }
  assert.deepEqual(silent.sort(), []);
});
