/**
 * migrate(): order, records, errors with file and line, refused databases, and warnings; and the
 * statements of a file.
 */

import assert from "node:assert/strict";
import type postgres from "postgres";
import { join } from "node:path";
import {
  ForeignDatabaseError,
  migrate,
  MigrationError,
} from "../../apps/server/migrations/migrate.ts";
import { splitStatements } from "../../apps/server/migrations/sql_statements.ts";
import { connect, createEmptyDatabase } from "../support/database/database.ts";

/** A folder of migrations and an empty database. */
interface Scratch {
  folder: string;
  url: string;
  sql: postgres.Sql;
}

async function withScratch(
  files: Record<string, string>,
  test: (scratch: Scratch) => Promise<void>,
): Promise<void> {
  await using open = new AsyncDisposableStack();
  const folder = await Deno.makeTempDir();
  open.defer(() => Deno.remove(folder, { recursive: true }));
  for (const [file, text] of Object.entries(files)) {
    await Deno.writeTextFile(join(folder, file), text);
  }
  await using database = await createEmptyDatabase();
  await using sql = connect(database.url);
  await test({ folder, url: database.url, sql });
}

const TABLE = { "20260101000000_table.sql": "create table public.steps (n int);" };
const ONE = { "20260102000000_one.sql": "insert into steps values (1);" };
const TWO = { "20260103000000_two.sql": "insert into steps select max(n) + 1 from steps;" };

Deno.test("migrate() applies files by version and ignores other files", async () => {
  const files = { ...TWO, "notes.sql": "broken", "20260101.sql": "broken", ...ONE, ...TABLE };
  await withScratch(files, async ({ folder, url, sql }) => {
    const applied = await migrate(url, undefined, folder);
    assert.deepEqual(applied, [TABLE, ONE, TWO].flatMap(Object.keys));
    assert.deepEqual((await sql`select n from steps order by n`).map(({ n }) => n), [1, 2]);
  });
});

Deno.test("migrate() refuses two files with one version, and changes nothing", async () => {
  await withScratch({ ...TABLE, "20260101000000_other.sql": "select 1;" }, async (scratch) => {
    await assert.rejects(migrate(scratch.url, undefined, scratch.folder), {
      name: "MigrationError",
      message: "20260101000000_other.sql and 20260101000000_table.sql have the same version: " +
        "give the newer one a later version",
    });
    const [found] = await scratch.sql`select to_regclass('public.steps') as name`;
    assert.equal(found!.name, null);
  });
});

Deno.test("migrate() applies a file once, also one that was added later, and at once", async () => {
  await withScratch(TABLE, async ({ folder, url, sql }) => {
    await migrate(url, undefined, folder);
    for (const [file, text] of Object.entries({ ...ONE, ...TWO })) {
      await Deno.writeTextFile(join(folder, file), text);
    }
    const runs = await Promise.all([1, 2, 3].map(() => migrate(url, undefined, folder)));
    assert.deepEqual(runs.map((applied) => applied.length).sort(), [0, 0, 2]);
    assert.deepEqual(await migrate(url, undefined, folder), []);
    assert.equal((await sql`select n from steps`).length, 2);
  });
});

Deno.test("migrate() writes the same records as the Supabase CLI", async () => {
  const text = "-- why\nselect 1;\n\nselect ';';\n";
  await withScratch({ "20260101000000_a_b.sql": text }, async ({ folder, url, sql }) => {
    await migrate(url, undefined, folder);
    const rows = await sql`select version, name, statements
      from supabase_migrations.schema_migrations`;
    assert.deepEqual([...rows], [{
      version: "20260101000000",
      name: "a_b",
      statements: ["-- why\nselect 1", "select ';'"],
    }]);
  });
});

Deno.test("migrate() continues where the Supabase CLI has stopped", async () => {
  await withScratch({ ...TABLE, ...ONE }, async ({ folder, url, sql }) => {
    await sql.unsafe(`
      create schema supabase_migrations;
      create table supabase_migrations.schema_migrations
        (version text primary key, statements text[], name text);
      insert into supabase_migrations.schema_migrations values ('20260101000000', null, 'table');
      create table public.steps (n int);
    `).simple();
    assert.deepEqual(await migrate(url, undefined, folder), Object.keys(ONE));
  });
});

/** A broken migration, and the place that its error must name. */
const FAILURES: readonly [text: string, message: RegExp][] = [
  ["select 1;\n\nselect\n  1 +;", /^20260102000000_bad\.sql:4: .*\(42601\)/],
  ["select 1;\nselect 1,\n  nowhere;", /_bad\.sql:3: .*nowhere.*\(42703\)/],
  ["select 1;\n\nselect 1/0;", /_bad\.sql:3: division by zero \(22012\)/],
  [
    "select 1;\ndo $$\nbegin\n  raise 'no luck';\nend $$;",
    /_bad\.sql:2: no luck \(P0001\)\n.*line 3/,
  ],
];

Deno.test("migrate() names file and line of an error", async () => {
  await withScratch(TABLE, async ({ folder, url }) => {
    for (const [text, message] of FAILURES) {
      await Deno.writeTextFile(join(folder, "20260102000000_bad.sql"), text);
      const rejected = migrate(url, undefined, folder);
      await assert.rejects(rejected, { name: "MigrationError", message }, text);
    }
  });
});

Deno.test("migrate() rolls back a failed file and keeps the earlier ones", async () => {
  const bad = { "20260102000000_bad.sql": "create table public.half (n int); select 1/0;" };
  await withScratch({ ...TABLE, ...bad, ...TWO }, async ({ folder, url, sql }) => {
    await assert.rejects(migrate(url, undefined, folder), MigrationError);
    const tables = await sql`select tablename from pg_tables where schemaname = 'public'`;
    assert.deepEqual(tables.map(({ tablename }) => tablename), ["steps"]);
    const rows = await sql`select version from supabase_migrations.schema_migrations`;
    assert.deepEqual(rows.map(({ version }) => version), ["20260101000000"]);
  });
});

const LATER = { "20260104000000_later.sql": "insert into steps values (4);" };
/** Changes of the folder after its migrations were applied, and the message of the refusal. */
const REFUSALS: [files: Record<string, string | null>, message: RegExp][] = [
  [
    { "20260103000000_two.sql": null },
    /^The database has migration 20260103000000, which .* created by a newer version\. Nothing was/,
  ],
  [
    { "20260102000000_one.sql": null, ...LATER },
    /^The database has migration 20260102000000, which .* between releases\./,
  ],
  [
    { "20260102120000_new.sql": "select 1", ...LATER },
    /^The database has migration 20260103000000 but not 20260102120000_new\.sql, which comes/,
  ],
  [
    { "20260103000000_two.sql": "insert into steps values (3);", ...LATER },
    /^The database has a different 20260103000000_two\.sql than this version/,
  ],
];

for (const [files, message] of REFUSALS) {
  Deno.test(`migrate() changes nothing, and tells: ${message.source}`, async () => {
    await withScratch({ ...TABLE, ...ONE, ...TWO }, async ({ folder, url, sql }) => {
      await migrate(url, undefined, folder);
      for (const [file, text] of Object.entries(files)) {
        if (text === null) await Deno.remove(join(folder, file));
        else await Deno.writeTextFile(join(folder, file), text);
      }
      await assert.rejects(migrate(url, undefined, folder), (error) => {
        assert(error instanceof ForeignDatabaseError);
        assert.match(error.message, message);
        return true;
      });
      assert.equal((await sql`select n from steps`).length, 2);
    });
  });
}

/** Records of the same file by other tools: none, an empty one, and one without comments. */
const RECORDS: (string[] | null)[] = [
  null,
  [],
  ["insert into steps select max(n)   + 1\n from steps", "select ';'"],
];

Deno.test("migrate() accepts the records of other tools", async () => {
  const two = { "20260103000000_two.sql": `-- Why;\n${Object.values(TWO)[0]}\nselect ';';\n` };
  await withScratch({ ...TABLE, ...ONE, ...two }, async ({ folder, url, sql }) => {
    await migrate(url, undefined, folder);
    for (const statements of RECORDS) {
      await sql`update supabase_migrations.schema_migrations set statements = ${statements}
        where version = '20260103000000'`;
      assert.deepEqual(await migrate(url, undefined, folder), [], `${statements}`);
    }
  });
});

const WARNS = {
  "20260104000000_warns.sql": `do $$ begin
    raise notice 'all is well';
    raise warning 'no job was scheduled' using hint = 'read the manual';
  end $$;`,
};

Deno.test("migrate() writes only warnings, to standard error by default", async () => {
  await withScratch(WARNS, async ({ folder, url }) => {
    const written: string[] = [];
    const { error } = console;
    console.error = (text: string) => written.push(text);
    try {
      await migrate(url, undefined, folder);
    } finally {
      console.error = error;
    }
    assert.deepEqual(written, ["Warning: no job was scheduled\n  read the manual"]);
  });
});

/** Objects in a database before the project's own migrations, and the warnings about them. */
const OWN: [before: string, warnings: RegExp][] = [
  ["", /^$/],
  ["create schema net", /^Warning: no job was scheduled: pg_cron and pg_net must both/],
  [
    `create schema net;
     create schema cron;
     create function cron.schedule(text, text, text) returns bigint language plpgsql
     as $$ begin raise exception 'permission denied for table job'; end $$`,
    /^Warning: no job was scheduled: permission denied for table job\n {2}docs\/operations\/backup.md/,
  ],
];

for (const [before, expected] of OWN) {
  Deno.test(`migrate() warns at most that no job is scheduled: ${expected.source}`, async () => {
    await withScratch({}, async ({ url, sql }) => {
      await sql.unsafe(before).simple();
      const warnings: string[] = [];
      await migrate(url, undefined, undefined, (text) => warnings.push(text));
      assert.match(warnings.join("\n"), expected);
      assert.ok(warnings.length <= 1);
    });
  });
}

/** [case, SQL, text and line of each statement] */
const STATEMENTS: readonly [string, string, ...[string, number][]][] = [
  ["an empty file", ""],
  ["blanks and comments alone", "-- nothing;\n/* here; */\n"],
  ["the last semicolon may be missing", "select 1;\nselect 2", ["select 1", 1], ["select 2", 2]],
  ["empty statements are dropped", ";;\nselect 1;;", ["select 1", 2]],
  ["lines inside of statements", "a\nb;c\n;\n;d", ["a\nb", 1], ["c", 2], ["d", 4]],
  ["blanks before a statement", "\n\n  select 1;", ["select 1", 3]],
  ["a comment belongs to the next statement", "-- a;b\nselect 1;", ["-- a;b\nselect 1", 1]],
  ["a string", "select 'a;''b;' ;select 2", ["select 'a;''b;'", 1], ["select 2", 1]],
  ["a string with escapes", "select e'\\';' ;select 2", ["select e'\\';'", 1], ["select 2", 1]],
  ["no escapes in a plain string", "select '\\';select 2", ["select '\\'", 1], ["select 2", 1]],
  ["a quoted name", 'select 1 as "a;""b"; ', ['select 1 as "a;""b"', 1]],
  ["a dollar quote", "do $$ a; b $$;\nselect 1", ["do $$ a; b $$", 1], ["select 1", 2]],
  ["dollar quotes within another", "do $x$ $$;$$; $x$; ", ["do $x$ $$;$$; $x$", 1]],
  ["a parameter is no dollar quote", "select $1;select $1", ["select $1", 1], ["select $1", 1]],
  ["nested comments", "/* a /* b; */ c; */ select 1;", ["/* a /* b; */ c; */ select 1", 1]],
  ["an unfinished comment", "select 1; /* a;", ["select 1", 1]],
  [
    "the body of a standard function",
    "create function f() begin atomic select 1; select 2; end;\nselect 3",
    ["create function f() begin atomic select 1; select 2; end", 1],
    ["select 3", 2],
  ],
];

for (const [criterion, sql, ...expected] of STATEMENTS) {
  Deno.test(`splitStatements() ${criterion}`, () => {
    const found = splitStatements(sql).map(({ text, line }) => [text, line]);
    assert.deepEqual(found, expected);
  });
}
