/**
 * Row-level security for the owner of the tables, who is the role of the entry functions. Rows
 * without a matching setting are hidden, and every policy is needed as it is.
 */

import assert from "node:assert/strict";
import {
  environmentColumn,
  OPERATORS_TABLES,
  type Settings,
  type Sight,
  startTenants,
  type Tenants,
} from "../support/service/tenants.ts";

const CLOSED: Sight = {
  select: {},
  insert: { own: "42501", other: "42501" },
  update: {},
  delete: {},
};

/** Tables whose rows cannot be changed. */
const APPEND_ONLY = new Set(["ledger_movements"]);
/** Rows that others refer to cannot be deleted: foreign_key_violation. */
const REFERRED_TO = new Set(["environments", "api_keys", "provider_accounts"]);

Deno.test("row-level security", async (t) => {
  await using tenants = await startTenants();
  const { tables, look } = tenants;
  const closed = Object.fromEntries(tables.map((table) => [table, CLOSED]));
  for (const [name, settings] of shutSettings()) {
    await t.step(`${name}: every table hides all rows and accepts none`, async () => {
      assert.deepEqual(await look(settings), closed);
    });
  }
  await t.step("an environment opens only its rows", () => assertOpens(tenants, "own"));
  await t.step(
    "a live environment opens only its rows, the ledger without changes",
    () => assertOpens(tenants, "live"),
  );
  await t.step("a key's hash opens only its secret", async () => {
    const [secret] = await tenants.service.sql`
      select hash::text from pay.api_key_secrets
      where environment_id = ${tenants.environments.own}`;
    const seen = await look({ "pay.key_hashes": `{"\\${secret!.hash}"}` });
    const own_secret = {
      select: { own: 1 },
      insert: { own: "23505", other: "42501" },
      update: { own: 1 },
      delete: { own: 1 },
    };
    assert.deepEqual(seen, { ...closed, api_key_secrets: own_secret });
  });
  await t.step("a row cannot be moved to another environment", async () => {
    const { own, other } = tenants.environments;
    for (const table of tables) {
      const is_tenants = environmentColumn(table) === "environment_id" &&
        !OPERATORS_TABLES.has(table);
      if (!is_tenants) continue;
      const move = `update pay.${table} set environment_id = '${other}'
        where environment_id = '${own}'`;
      const work = tenants.service.sql.begin(async (sql) => {
        await sql`set local role pay_owner`;
        await sql`select set_config('pay.environment_ids', ${`{${own}}`}, true)`;
        const { count } = await sql.unsafe(move);
        assert.deepEqual([APPEND_ONLY.has(table), count], [true, 0], table);
      });
      if (APPEND_ONLY.has(table)) await work;
      else await assert.rejects(work, { code: "42501" }, table);
    }
  });
  await assertEachIsNeeded(t, tenants);
});

/** Settings that open no row. */
function shutSettings(): [name: string, settings: Settings][] {
  return [
    ["nothing set", {}],
    ["empty settings", { "pay.environment_ids": "", "pay.key_hashes": "" }],
    ["empty lists", { "pay.environment_ids": "{}", "pay.key_hashes": "{}" }],
    ["an unknown environment", { "pay.environment_ids": "{env_00000000000000000000000000}" }],
    ["no environment", { "pay.environment_ids": "{NULL}" }],
    ["an unknown key", { "pay.key_hashes": `{"\\\\x00"}` }],
  ];
}

async function assertOpens(
  { service, environments, tables, look }: Tenants,
  whose: "own" | "live",
) {
  const seen = await look({ "pay.environment_ids": `{${environments[whose]}}` });
  for (const table of tables) {
    if (OPERATORS_TABLES.has(table)) {
      assert.deepEqual(seen[table], CLOSED);
      continue;
    }
    const column = environmentColumn(table);
    const [{ n }] = await service.sql.unsafe(
      `select count(*)::int as n from pay.${table} where ${column} = $1`,
      [environments[whose]],
    ) as unknown as [{ n: number }];
    assert.ok(n > 0, table);
    const all = { [whose]: n };
    const is_append_only = APPEND_ONLY.has(table);
    assert.deepEqual(seen[table], {
      select: all,
      insert: { own: whose === "own" ? "23505" : "42501", other: "42501" },
      update: is_append_only ? {} : all,
      delete: REFERRED_TO.has(table) ? "23503" : is_append_only && whose === "live" ? {} : all,
    }, table);
  }
}

/**
 * Drops each policy, opens each policy, and unforces each table. A difference must be visible in
 * the table every time.
 */
async function assertEachIsNeeded(t: Deno.TestContext, { service, environments, lookAt }: Tenants) {
  const [secret] = await service.sql`
    select hash::text from pay.api_key_secrets where environment_id = ${environments.own}`;
  const contexts: Settings[] = [
    {},
    { "pay.environment_ids": `{${environments.own}}` },
    { "pay.environment_ids": `{${environments.live}}` },
    { "pay.key_hashes": `{"\\${secret!.hash}"}` },
    { "pay.worker": "on" },
  ];
  const policies = await service.sql<{ name: string; on: string; cmd: string }[]>`
    select policyname as name, tablename as on, cmd from pg_policies where schemaname = 'pay'`;
  assert.ok(policies.length > 0);
  for (const [table, own] of Map.groupBy(policies, ({ on }) => on)) {
    const before = await lookAt(table, contexts);
    const mutations = own.flatMap(({ name, cmd }) => [
      `drop policy ${name} on pay.${table}`,
      `alter policy ${name} on pay.${table} ${cmd === "INSERT" ? "with check" : "using"} (true)`,
    ]);
    mutations.push(`alter table pay.${table} no force row level security`);
    mutations.push(`alter table pay.${table} disable row level security`);
    for (const mutation of mutations) {
      await t.step(`"${mutation}" makes a visible difference`, async () => {
        assert.notDeepEqual(await lookAt(table, contexts, mutation), before);
      });
    }
  }
}
