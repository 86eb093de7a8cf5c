/** The committed description of the schema against what the migrations make, and its diff. */

import assert from "node:assert/strict";
import postgres from "postgres";
import {
  diffLines,
  renderSchema,
  SCHEMA_FILE,
  withoutViewQueries,
} from "../../scripts/schema_dump.ts";
import { cloneDatabase } from "../support/database.ts";

/** Statements that a dump must show, and what it shows of each. */
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
    `create trigger extra_trigger before update on pay.refunds
     for each row execute function suppress_redundant_updates_trigger()`,
    /^\+ CREATE TRIGGER/m,
  ],
  ["a trigger's state", "alter table pay.refunds disable trigger user", /^\+ .*enabled: D/m],
  ["a table's grant", "grant select on pay.refunds to pay_api", /^\+ grant select on pay.refunds/m],
  ["a column's grant", "grant select (id) on pay.refunds to pay_api", /^\+ privileges of .*\.id/m],
  [
    "a function's grant",
    "grant execute on function pay.idempotency_retention() to public",
    /^\+ grant execute on function pay.idempotency_retention\(\) to public/m,
  ],
  ["an owner", "alter table pay.refunds owner to pay_api", /^\+ alter table .* owner to pay_api/m],
  ["a comment", "comment on table pay.refunds is 'other'", /^\+ comment on .* 'other'/m],
  [
    "a search path",
    "alter function pay.idempotency_retention() set search_path to x",
    /^\+ {2}SET search_path/m,
  ],
  ["a storage parameter", "alter table pay.refunds set (fillfactor = 50)", /^\+ .*fillfactor=50/m],
  ["a table", "create table pay.extra (id int)", /^\+ create table pay.extra/m],
  ["a view", "create view pay.extra_view as select 1", /^\+ create view pay.extra_view/m],
];

Deno.test("docs/schema.sql is what the migrations make", async () => {
  const database = await cloneDatabase();
  try {
    const sql = postgres(database.url, { max: 1 });
    const [row] = await sql`select current_setting('server_version_num')::int >= 160000 as is_new`;
    await sql.end();
    const texts = [await Deno.readTextFile(SCHEMA_FILE), await renderSchema(database.url)];
    const [committed, found] = row!.is_new ? texts : texts.map(withoutViewQueries);
    const difference = diffLines(committed!, found!);
    assert.ok(difference === "", `run "deno task schema":\n${difference}`);
  } finally {
    await database.drop();
  }
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
