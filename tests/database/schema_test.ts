/** A check of `deno task schema --check`: functions that PostgreSQL takes, and that would fail. */

import assert from "node:assert/strict";
import { findBrokenFunctions } from "../../tools/schema/schema.ts";
import { cloneDatabase, connect } from "../support/database/database.ts";

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
  await using database = await cloneDatabase();
  await using sql = connect(database.url);
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
});
