/** The migration of the functions, and the checks of `deno task schema --check`. */

import assert from "node:assert/strict";
import { join } from "node:path";
import postgres from "postgres";
import { scratchServer } from "../../apps/server/postgres/scratch_database.ts";
import { checkSchema, findBrokenFunctions } from "../../tools/schema/schema.ts";
import { renderFunctions, writeFunctions } from "../../tools/schema/schema_files.ts";
import { withTemporaryFolder } from "../support/common/temporary_folder.ts";
import { cloneDatabase, testServer } from "../support/database/database.ts";

const FUNCTION = `-- One.
create or replace function pay.one() returns integer language sql as $$ select 1; $$;
comment on function pay.one is 'One.';
grant execute on function pay.one() to pay_api;
`;
const VIEWS = `create or replace view pay.a as select * from pay.b;
create or replace view pay.b as select pay.one() as n;
`;
const FUNCTIONS = "20270101000000_functions.sql";

Deno.test("the migrations and supabase/schemas agree", async () => {
  assert.deepEqual(await checkSchema(scratchServer(testServer().superuser_url)), []);
});

/** Runs the test with a project of two schema files, whose functions are in a migration. */
function withProject(
  test: (folders: Parameters<typeof renderFunctions>[0] & object) => Promise<void>,
): Promise<void> {
  return withTemporaryFolder(async (folder) => {
    const [migrations, schemas] = [join(folder, "migrations"), join(folder, "schemas")];
    for (const path of [migrations, schemas]) await Deno.mkdir(path, { recursive: true });
    const releases = join(folder, "releases.json");
    await Deno.writeTextFile(releases, "{}");
    await Deno.writeTextFile(join(migrations, FUNCTIONS), "");
    await Deno.writeTextFile(join(schemas, "a.sql"), VIEWS);
    await Deno.writeTextFile(join(schemas, "b.sql"), FUNCTION);
    const folders = { migrations, schemas, releases };
    assert.equal(await writeFunctions(folders), join(migrations, FUNCTIONS));
    await test(folders);
  });
}

/** The objects of a migration, in order. */
const objectsOf = (text: string) =>
  [...text.matchAll(/^create or replace \w+ ([\w.]+)/gm)].map(([, name]) => name);

Deno.test("renderFunctions() puts each object after those that it needs", () =>
  withProject(async (folders) => {
    const { text, is_current } = await renderFunctions(folders);
    assert.deepEqual(objectsOf(text), ["pay.one", "pay.b", "pay.a"]);
    assert.match(text, /comment on function pay\.one is 'One\.';\ngrant execute/);
    assert.equal(is_current, true);
    assert.equal(await writeFunctions(folders), null);
  }));

Deno.test("renderFunctions() after a release has what has changed since", () =>
  withProject(async (folders) => {
    await Deno.writeTextFile(folders.releases, `{ "1.0.0": { "${FUNCTIONS}": "" } }`);
    assert.equal(await writeFunctions(folders), null);
    await Deno.writeTextFile(join(folders.schemas, "b.sql"), FUNCTION.replace("1;", "2;"));
    const { path, text, is_current } = await renderFunctions(folders);
    assert.deepEqual([objectsOf(text), is_current], [["pay.one"], false]);
    assert.match(path, /\d{14}_functions\.sql$/);
    assert.notEqual(path, join(folders.migrations, FUNCTIONS));
  }));

Deno.test("renderFunctions() refuses a statement that makes no function and no view", () =>
  withProject(async (folders) => {
    await Deno.writeTextFile(join(folders.schemas, "c.sql"), "\ncreate table pay.c (id int);");
    await assert.rejects(renderFunctions(folders), /^Error: c\.sql:2: a file of supabase\/schemas/);
  }));

/** Functions that PostgreSQL accepts unchecked, and what is found. */
const BROKEN: [definition: string, problem: RegExp][] = [
  ["returns integer language sql as 'select nothing'", /column "nothing" does not exist/],
  ["returns integer language plpgsql as 'begin retur 1; end'", /syntax error/],
  [
    "returns integer language plpgsql as 'begin return pay.gone(); end'",
    /pay\.gone does not exist/,
  ],
  ["returns text language sql as $$ select 'select pay.gone()' $$", /pay\.gone does not exist/],
];

Deno.test("findBrokenFunctions() finds", async (t) => {
  const database = await cloneDatabase();
  const sql = postgres(database.url, { max: 1, onnotice: () => {} });
  try {
    await sql`set check_function_bodies = off`;
    for (const [definition, problem] of BROKEN) {
      await t.step(definition, async () => {
        await sql.unsafe(`create function pay.broken() ${definition}`);
        const found = await findBrokenFunctions(database.url);
        assert.equal(found.length, 1, found.join("\n"));
        assert.match(found[0]!, problem);
        await sql`drop function pay.broken()`;
      });
    }
    await t.step("two functions of one name", async () => {
      await sql`create function pay.load(p_one integer) returns integer language sql as 'select p_one'`;
      assert.match((await findBrokenFunctions(database.url)).join(), /^pay\.load\(.* one name/);
    });
  } finally {
    await sql.end();
    await database.drop();
  }
});
