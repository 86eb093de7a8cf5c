/**
 * The migrations and supabase/schemas make the same schema, and every kind of change appears in its
 * description.
 */

import assert from "node:assert/strict";
import postgres from "postgres";
import { diffLines } from "../../tools/diff_lines.ts";
import { readSchema, renderDescription } from "../../tools/schema/schema_catalogue.ts";
import { checkSchema, renderSchema } from "../../tools/schema/schema_dump.ts";
import { scratchServer } from "../../apps/server/postgres/scratch_database.ts";
import { cloneDatabase, testServer } from "../support/database/database.ts";

/** Statements, and the line of the dump that must show each. */
const CHANGES: [name: string, statement: string, line: RegExp][] = [
  ["a column", "alter table pay.refunds add extra int", /^\+ {3}extra integer/m],
  ["a default", "alter table pay.refunds alter amount_minor set default 1", /^\+ .*default 1/m],
  ["a null", "alter table pay.refunds alter body drop not null", /^\+ {3}body text,/m],
  [
    "a type",
    "alter table pay.api_keys alter name type varchar(9)",
    /^\+ .*character varying\(9\)/m,
  ],
  [
    "a collation",
    `alter table pay.payments alter reference type text collate "POSIX"`,
    /^\+ .*POSIX/m,
  ],
  [
    "a constraint",
    "alter table pay.refunds drop constraint refunds_amount_minor_positive",
    /^- .*refunds_amount/m,
  ],
  ["an index", "drop index pay.refunds_payment", /^- CREATE INDEX refunds_payment/m],
  ["a policy", "drop policy refunds_of_environment on pay.refunds", /^- create policy refunds_/m],
  ["forced security", "alter table pay.refunds no force row level security", /^\+ .*no force row/m],
  [
    "a trigger",
    `create trigger same before update on pay.refunds
       for each row execute function suppress_redundant_updates_trigger()`,
    /^\+ CREATE TRIGGER/m,
  ],
  ["a trigger's state", "alter table pay.refunds disable trigger user", /^\+ .*enabled: D/m],
  ["a table's grant", "grant select on pay.refunds to pay_api", /^\+ grant select on pay.refunds/m],
  ["a column's grant", "grant select (id) on pay.refunds to pay_api", /^\+ privileges of .*\.id/m],
  [
    "a function's grant",
    "grant execute on function pay_internal.server_time() to public",
    /^\+ grant execute on function pay_internal.server_time\(\) to public/m,
  ],
  ["an owner", "alter table pay.refunds owner to pay_api", /^\+ alter table .* owner to pay_api/m],
  ["a comment", "comment on table pay.refunds is 'other'", /^\+ comment on .* 'other'/m],
  [
    "a search path",
    "alter function pay_internal.server_time() set search_path to x",
    /^\+ {2}SET search_path/m,
  ],
  ["a storage parameter", "alter table pay.refunds set (fillfactor = 50)", /^\+ .*fillfactor=50/m],
  ["a table", "create table pay.extra (id int)", /^\+ create table pay.extra/m],
  ["a view", "create view pay.extra_view as select 1 as a", /^\+ create view pay.extra_view/m],
  [
    "a view's column",
    "create or replace view pay.extra_view as select 1 as a, 2 as b",
    /^\+ {3}b integer/m,
  ],
  ["a view's comment", "comment on view pay.extra_view is 'x'", /^\+ comment on view .* 'x'/m],
  ["a type", "create type pay.extra_type as (a int)", /^\+ create type pay.extra_type as/m],
  ["a type's comment", "comment on type pay.extra_type is 'x'", /^\+ comment on type .* 'x'/m],
  ["a type's column", "alter type pay.extra_type add attribute b text", /^\+ {3}b text/m],
];

/** Statements that only the whole description shows. */
const CHANGES_INSIDE: [name: string, statement: string, line: RegExp][] = [
  [
    "a function's body",
    `create or replace function pay_internal.server_time() returns timestamptz
       language plpgsql stable parallel safe set search_path = pg_catalog, pg_temp
       as $$ begin return now() - interval '1 s'; end $$`,
    /^\+ .*1 s/m,
  ],
  [
    "a view's query",
    "create or replace view pay.extra_view as select 3 as a",
    /^\+ .*3 AS a/m,
  ],
];

Deno.test("the migrations and supabase/schemas agree", async () => {
  const problems = await checkSchema(scratchServer(testServer().superuser_url));
  assert.ok(problems.length === 0, problems.join("\n\n"));
});

Deno.test("renderSchema() shows every kind of change", async (t) => {
  const database = await cloneDatabase();
  const sql = postgres(database.url, { max: 1, onnotice: () => {} });
  try {
    for (const [name, statement, line] of CHANGES) {
      await t.step(name, async () => {
        const before = await renderSchema(database.url);
        await sql.unsafe(statement);
        assert.match(diffLines(before, await renderSchema(database.url)), line);
      });
    }
    await t.step("refuses a kind of object that it cannot describe", async () => {
      await sql`create sequence pay.extra_numbers`;
      await assert.rejects(renderSchema(database.url), /leaves out sequence pay\.extra_numbers/);
    });
  } finally {
    await sql.end();
    await database.drop();
  }
});

Deno.test("readSchema() shows the bodies of functions and views only if it is whole", async (t) => {
  const database = await cloneDatabase();
  const sql = postgres(database.url, { max: 1, onnotice: () => {} });
  const whole = async () => renderDescription(await readSchema(sql, "whole"));
  try {
    await sql`create view pay.extra_view as select 1 as a`;
    for (const [name, statement, line] of CHANGES_INSIDE) {
      await t.step(name, async () => {
        const before = [await whole(), await renderSchema(database.url)];
        await sql.unsafe(statement);
        assert.match(diffLines(before[0]!, await whole()), line);
        assert.equal(await renderSchema(database.url), before[1]);
      });
    }
  } finally {
    await sql.end();
    await database.drop();
  }
});

const DIFFERENCES: [name: string, before: string, after: string, difference: string][] = [
  ["nothing", "a\nb", "a\nb", ""],
  ["a changed line", "a\nb\nc\nd", "a\nx\nc\nd", "@@ line 2 @@\n  a\n- b\n+ x"],
  ["an added line", "a\nb\nc", "a\nx\nb\nc", "@@ line 2 @@\n  a\n+ x"],
  ["a removed line", "a\nb\nc\nd", "a\nc\nd", "@@ line 2 @@\n  a\n- b"],
  ["an added end", "a", "a\nb\nc", "@@ line 2 @@\n  a\n+ b\n+ c"],
  ["a removed end", "a\nb\nc", "a", "@@ line 2 @@\n  a\n- b\n- c"],
  ["nothing in common", "a\nb", "c", "@@ line 1 @@\n- a\n- b\n+ c"],
];

for (const [name, before, after, difference] of DIFFERENCES) {
  Deno.test(`diffLines() of ${name}`, () => assert.equal(diffLines(before, after), difference));
}
