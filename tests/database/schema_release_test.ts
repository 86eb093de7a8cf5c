/**
 * The generated migration, in a small project of its own. It contains only the changes, and the
 * migrations alone then produce the state of the schema files. writeRelease() applies the
 * migrations before it writes the file.
 */

import assert from "node:assert/strict";
import { compareWithFiles } from "../../tools/schema/schema_release.ts";
import { scratchServer } from "../../apps/server/postgres/scratch_database.ts";
import { testServer } from "../support/database/database.ts";
import {
  BECOME,
  FILES,
  HEAD,
  LEAVE,
  ONE_WITH_MORE,
  type Project,
  TAIL,
  withProject,
  withReleased,
} from "../support/database/schema_project.ts";

/** Changes of the files, and the drops and creates of the migration in order. */
const CHANGES: [
  name: string,
  files: Record<string, string | null>,
  dropped: string[],
  created: string[],
][] = [
  [
    "a changed body",
    { one: FILES.one.replace("select 1", "select 11") },
    [],
    ["pay.one"],
  ],
  ["a changed comment", { one: FILES.one.replace("'One.'", "'Uno.'") }, [], ["pay.one"]],
  [
    "a dropped comment",
    { items: FILES.items.replace("comment on column pay.items.two is 'Two.';", "") },
    ["function pay.item_of(integer)", "view pay.items"],
    ["pay.items", "pay.item_of"],
  ],
  [
    "a dropped grant",
    { one: FILES.one.replace("grant execute on function pay.one() to pay_api;", "") },
    ["function pay.one()"],
    ["pay.one"],
  ],
  [
    "a further grant",
    { one: `${FILES.one} grant execute on function pay.one() to pay_operator;` },
    [],
    ["pay.one"],
  ],
  [
    "another return type, with the dependent objects",
    { two: FILES.two.replace("returns integer", "returns bigint") },
    ["function pay.item_of(integer)", "view pay.items", "function pay.two(integer)"],
    ["pay.two", "pay.items", "pay.item_of"],
  ],
  [
    "other parameters",
    { one: ONE_WITH_MORE },
    ["function pay.one()"],
    ["pay.one"],
  ],
  [
    "another name of a parameter",
    { two: FILES.two.replaceAll("p_n", "p_number") },
    ["function pay.item_of(integer)", "view pay.items", "function pay.two(integer)"],
    ["pay.two", "pay.items", "pay.item_of"],
  ],
  [
    "a further column of a view",
    { items: FILES.items.replace(" as two", " as two, i.secret") },
    [],
    ["pay.items"],
  ],
  [
    "a dropped column of a view",
    {
      items: FILES.items.replace(", pay.two(1) as two", "")
        .replace("comment on column pay.items.two is 'Two.';", ""),
    },
    ["function pay.item_of(integer)", "view pay.items"],
    ["pay.items", "pay.item_of"],
  ],
  ["a dropped function", { item_of: null }, ["function pay.item_of(integer)"], []],
  [
    "functions that use one another",
    { item_of: null, items: null, two: null },
    ["function pay.item_of(integer)", "view pay.items", "function pay.two(integer)"],
    [],
  ],
  [
    "a new function",
    { more: `${HEAD} pay.more() returns integer ${TAIL} as $$ select 5 $$;` },
    [],
    ["pay.more"],
  ],
];

for (const [name, files, dropped, created] of CHANGES) {
  Deno.test(`writeRelease() of ${name}`, () =>
    withReleased(async (project) => {
      await project.change(files);
      const { written } = await project.release();
      const text = await Deno.readTextFile(written!);
      assert.deepEqual([...text.matchAll(/^drop (.*);$/gm)].map(([, object]) => object), dropped);
      const names = [...text.matchAll(/^create or replace (?:function|view) ([\w.]+)/gm)];
      assert.deepEqual(names.map(([, object]) => object), created);
    }));
}

Deno.test("writeRelease() names functions that older HTTP functions may call", () =>
  withReleased(async (project) => {
    await project.change({
      one: ONE_WITH_MORE,
      item_of: null,
    });
    assert.deepEqual((await project.release()).change.withdrawn, ["function pay.one()"]);
  }));

Deno.test("writeRelease() replaces an unreleased migration", () =>
  withReleased(async (project) => {
    const released = await project.migrations();
    await project.change({ one: FILES.one.replace("select 1", "select 11") });
    await project.release("first_name");
    const [first] = (await project.migrations()).slice(released.length);
    assert.match(first!, /^\d{14}_first_name\.sql$/);
    await project.write("30000101000000_by_hand.sql", "select 1;");

    await project.change({ one: FILES.one.replace("select 1", "select 111") });
    const { removed } = await project.release("second_name");
    const second = first!.replace("first_name", "second_name");
    assert.equal(removed, first);
    assert.deepEqual(await project.migrations(), [
      ...released,
      second,
      "30000101000000_by_hand.sql",
    ]);
    assert.match(await project.read(second), /select 111 /);

    const before = await project.read(second);
    await project.release("second_name");
    assert.equal(await project.read(second), before);

    await project.change({});
    assert.deepEqual(
      (({ written, removed }) => ({ written, removed }))(await project.release("second_name")),
      { written: null, removed: second },
    );
    assert.deepEqual(await project.migrations(), [...released, "30000101000000_by_hand.sql"]);
  }));

Deno.test("writeRelease() leaves released migrations as they are", () =>
  withReleased(async (project) => {
    const released = await project.migrations();
    const texts = await Promise.all(released.map(project.read));
    assert.equal((await project.release()).written, null);
    await project.change({ one: FILES.one.replace("select 1", "select 11") });
    await project.release("functions");
    assert.equal((await project.migrations()).length, released.length + 1);
    assert.deepEqual(await Promise.all(released.map(project.read)), texts);
  }));

Deno.test("writeRelease() gives a new migration the latest version", () =>
  withReleased(async (project) => {
    await project.write("30000101000000_by_hand.sql", "select 1;");
    await project.change({ one: FILES.one.replace("select 1", "select 11") });
    await project.release();
    assert.equal((await project.migrations()).at(-1), "30000101000001_change.sql");
  }));

/** Refused changes, each with the message. */
const REFUSALS: [name: string, prepare: (project: Project) => Promise<void>, message: RegExp][] = [
  [
    "a function that must be dropped but is used by a policy",
    async (project) => {
      await project.write(
        "30000101000000_policy.sql",
        `${BECOME} create policy p on pay.item to pay_owner using (id = pay.one()); ${LEAVE}`,
      );
      await project.change({ one: FILES.one.replace("returns integer", "returns bigint") });
    },
    /one\.sql: pay\.one: cannot change return type of existing function\n.* a policy.* by hand/s,
  ],
  [
    "an invalid body",
    (project) => project.change({ one: FILES.one.replace("select 1", "select nothing") }),
    /one\.sql: pay\.one: column "nothing" does not exist/,
  ],
  [
    "a body that calls a dropped function",
    (project) => project.change({ one: null }),
    /two\.sql: pay\.two: function pay\.one\(\) does not exist/,
  ],
  [
    "a plpgsql body that calls a dropped function",
    (project) =>
      project.change({
        one: null,
        two: `${HEAD} pay.two(p_n integer) returns integer ${TAIL.replace("sql", "plpgsql")}
          as $$ begin return pay.one() + p_n; end $$;`,
      }),
    /two\.sql: pay\.two: pay\.one does not exist/,
  ],
  [
    "dynamic SQL that calls a dropped function",
    (project) =>
      project.change({
        one: null,
        two: `${HEAD} pay.two(p_n integer) returns text ${TAIL}
          as $$ select 'select pay.one()' $$;`,
        items: null,
        item_of: null,
      }),
    /two\.sql: pay\.two: pay\.one does not exist/,
  ],
  [
    "a view of a missing table",
    (project) =>
      project.change({
        items: "create or replace view pay.items as select * from pay.n;",
        item_of: null,
      }),
    /items\.sql: pay\.items: relation "pay\.n" does not exist/,
  ],
  [
    "an object that is neither a function nor a view",
    (project) => project.change({ more: "\ncreate table pay.more (id integer);" }),
    /^more\.sql:2: a file of supabase\/schemas contains only "create or replace"/,
  ],
];

for (const [name, prepare, message] of REFUSALS) {
  Deno.test(`writeRelease() refuses ${name}`, () =>
    withReleased(async (project) => {
      await prepare(project);
      const before = await project.migrations();
      await assert.rejects(project.release(), { message });
      assert.deepEqual(await project.migrations(), before);
    }));
}

for (const name of ["", "Functions", "a-b", "../x"]) {
  Deno.test(`writeRelease() refuses the name "${name}"`, () =>
    withProject(async (project) => {
      await assert.rejects(
        project.release(name),
        /must only have the letters a to z, digits and "_"/,
      );
    }));
}

Deno.test("writeRelease() refuses two unreleased migrations of its own", () =>
  withReleased(async (project) => {
    await project.change({ one: FILES.one.replace("select 1", "select 11") });
    await project.release("a");
    const [file] = (await project.migrations()).slice(-1);
    await project.write(`3${file!.slice(1)}`, await project.read(file!));
    await assert.rejects(project.release("b"), /are generated and unreleased, .*: delete all but/);
  }));

Deno.test("compareWithFiles() shows differences between migrations and files", () =>
  withReleased(async (project) => {
    const server = scratchServer(testServer().superuser_url);
    assert.equal(await compareWithFiles(server, project.folders), "");
    await project.change({ one: FILES.one.replace("select 1", "select 11") });
    assert.match(
      await compareWithFiles(server, project.folders),
      /^- .*select 1 .*\n\+ .*select 11 /m,
    );
  }));
