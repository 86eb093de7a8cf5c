/**
 * An invented release after this tree. It changes functions and views in each way that the
 * generator knows, in two migrations that the generator writes, and changes a table by hand.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { MIGRATIONS_DIR } from "../../../scripts/schema/migrate.ts";
import { readMigrationFolder } from "../../../scripts/schema/migration_folder.ts";
import { hashUnreleased } from "../../../scripts/schema/releases.ts";
import { SCHEMAS_DIR } from "../../../scripts/schema/schema_files.ts";
import { type SchemaFolders, writeRelease } from "../../../scripts/schema/schema_release.ts";
import type { ScratchServer } from "../../../scripts/postgres/scratch_database.ts";

/** Functions and a view that the first step adds. */
const EXTRA = `-- A function that the second step removes.
create or replace function pay.extra_gone() returns integer
language sql stable set search_path = pg_catalog, pg_temp
as $$ select 1 $$;

-- A function. The second step revokes its grant.
create or replace function pay.extra_sum(p_environment_id text) returns numeric
language sql stable set search_path = pg_catalog, pg_temp
as $$ select sum(p.amount_minor) from pay.payments p where p.environment_id = p_environment_id $$;
grant execute on function pay.extra_sum(text) to pay_api;

create or replace view pay.extra_payments with (security_invoker = true) as
select p.environment_id, p.id from pay.payments p;
comment on view pay.extra_payments is 'A view that the second step widens.';
`;
const TABLE = `grant pay_owner to current_user;
select pg_catalog.set_config('pay.migrator', current_user, false);
set role pay_owner;
alter table pay.payments add column extra_note text;
comment on column pay.payments.extra_note is 'A column of the next release.';
create index payments_extra on pay.payments (environment_id, created_at);
do $$ begin execute pg_catalog.format('set role %I', pg_catalog.current_setting('pay.migrator')); end $$;
revoke pay_owner from current_user;
`;

/** Changes of the schema files in the second step. The text before a change must exist. */
const EDITS: [name: string, before: string, after: string][] = [
  ["a changed body", "return now();", "return now() + interval '0';"],
  [
    "a changed signature",
    "create or replace function pay.check_books()",
    "create or replace function pay.check_books(p_unused integer default 0)",
  ],
  ["its grant", "on function pay.check_books() to", "on function pay.check_books(integer) to"],
  ["a removed grant", "grant execute on function pay.extra_sum(text) to pay_api;\n", ""],
  [
    "an added column of a view",
    "p.id from pay.payments p;",
    "p.id, p.extra_note from pay.payments p;",
  ],
  ["a removed function", EXTRA.slice(0, EXTRA.indexOf("-- A function. The")), ""],
];

/** Runs `work` with a folder of this tree's migrations and those of the next release. */
export async function withNextRelease<T>(
  server: ScratchServer,
  work: (folders: SchemaFolders) => Promise<T>,
): Promise<T> {
  const root = await Deno.makeTempDir({ prefix: "payments-next-" });
  const folders = {
    migrations: join(root, "migrations"),
    schemas: join(root, "schemas"),
    releases: join(root, "releases.json"),
  };
  try {
    await copyFiles(MIGRATIONS_DIR, folders.migrations);
    await copyFiles(SCHEMAS_DIR, folders.schemas);
    await freeze(folders);
    await Deno.writeTextFile(join(folders.schemas, "extra.sql"), EXTRA);
    assert.ok((await writeRelease(server, folders, "next_functions")).written);
    await Deno.writeTextFile(join(folders.migrations, "30000101000000_next_table.sql"), TABLE);
    await freeze(folders);
    for (const [name, before, after] of EDITS) await edit(folders.schemas, name, before, after);
    const { change } = await writeRelease(server, folders, "last_functions");
    assert.deepEqual(change.dropped, [
      "function pay.check_books()",
      "function pay.extra_gone()",
      "function pay.extra_sum(text)",
    ]);
    return await work(folders);
  } finally {
    await Deno.remove(root, { recursive: true });
  }
}

/** Marks all migrations of the folder as released. */
async function freeze({ migrations, releases }: SchemaFolders): Promise<void> {
  const hashes = await hashUnreleased({}, await readMigrationFolder(migrations));
  await Deno.writeTextFile(releases, JSON.stringify({ "1.0.0": hashes }));
}

async function edit(folder: string, name: string, before: string, after: string): Promise<void> {
  for await (const { name: file } of Deno.readDir(folder)) {
    const text = await Deno.readTextFile(join(folder, file));
    if (!text.includes(before)) continue;
    await Deno.writeTextFile(join(folder, file), text.replace(before, () => after));
    return;
  }
  throw new Error(`${name}: no file of supabase/schemas has ${JSON.stringify(before)}`);
}

async function copyFiles(from: string, to: string): Promise<void> {
  await Deno.mkdir(to);
  for await (const { name, isFile } of Deno.readDir(from)) {
    if (isFile) await Deno.copyFile(join(from, name), join(to, name));
  }
}
