/**
 * Every entry function with a revoked or expired key. It refuses the key at once, opens no
 * environment, takes no lock and waits for none, and neither counts the request nor records the
 * use. In a list, requests with a valid key of another environment get the same outcome as alone.
 */

import assert from "node:assert/strict";
import type postgres from "postgres";
import { openSession } from "../support/database/database.ts";
import { parseApiKey } from "../../shared/core/api_key.ts";
import type { TestKey } from "../support/service/service.ts";
import {
  environmentColumn,
  OPERATORS_TABLES,
  startTenants,
  type Tenants,
} from "../support/service/tenants.ts";

/** A request of a list, without its number and its key. */
type Fields = Record<string, unknown>;

/** A call of an entry function. $1 is the list of requests. */
interface EntryCall {
  text: string;
  /** The request's fields, which name rows in the environment of the refused key. */
  fields: (of: Requested) => Fields;
  /** The valid requests of the list and their outcome; absent if the function takes one request. */
  beside?: { fields: Fields; outcome: string };
}

/** Rows in the environment of the refused key. Another transaction has locked them. */
interface Requested {
  payment: { id: string; sequence: number };
}

const KEYED = { request_id: "req_1", idempotency_key: "k", fingerprint: "ab".repeat(32) };
const WRITTEN = { ...KEYED, status: 200, body: "" };
const TRIGGER = JSON.stringify({ endpoint_id: "whe_1", leased_until: "2100-01-01T00:00:00Z" });

/** Calls that take one request with these fields, by the names of their functions. */
function callsOf(fields: Fields, texts: readonly string[]): Record<string, EntryCall> {
  return Object.fromEntries(
    texts.map((text) => [/^pay\.(\w+)/.exec(text)![1]!, { text, fields: () => fields }]),
  );
}

const CALLS: Record<string, EntryCall> = {
  commit: {
    text: `pay.commit(json_build_object('expects', (
        select json_agg(r.expects) from json_to_recordset($1::text::json) as r (expects json)
        where r.expects is not null
      ))::text, 1, $1::text, p_transfers => '{"(2,,,1,EUR,,,,)"}')`,
    fields: ({ payment }) => ({ ...WRITTEN, expects: { n: 2, ...payment } }),
    beside: { fields: { request_id: "req_2" }, outcome: "committed" },
  },
  load: {
    text: "pay.load($1)",
    fields: ({ payment }) => ({ ...KEYED, kind: "payments", id: payment.id }),
    beside: { fields: {}, outcome: "ok" },
  },
  list: {
    text: "pay.list($1, $1)",
    fields: () => ({ kind: "payments", limit: 10 }),
    beside: { fields: { kind: "refunds", limit: 10 }, outcome: "ok" },
  },
  ...callsOf({}, [
    "pay.balance($1)",
    "pay.read_clock($1)",
    "pay.read_position($1)",
    "pay.read_due($1, null, true)",
    "pay.read_pending_quota($1)",
    "pay.read_inbox($1, 'whe_1', null, 10)",
    "pay.match_fault($1, 'request', '{}', true)",
    "pay.transcript($1, 0)",
  ]),
  ...callsOf(WRITTEN, [
    "pay.reset_sandbox($1, 'env_00000000000000000000000000')",
    `pay.set_clock($1, '{"advance_s":1}')`,
    "pay.change_webhook_endpoint($1, 'whe_1', 1, null)",
    "pay.recover_deliveries($1, 'whe_1', 'whd_0', 'whd_1', null, '{failed}', '{}')",
    `pay.create_fault($1, '{"id":"flt_1","kind":"request","fault":"rate_limited","filter":{},
      "times":1}', 100)`,
    "pay.delete_fault($1, 'flt_1')",
    "pay.end_instrument($1, 'ins_1', null)",
    `pay.create_checkout($1, '{"id":"chk_1"}')`,
    "pay.cancel_checkout($1, 'chk_1', 1, true)",
    "pay.erase_customer($1, 'u1', null)",
    `pay.delete_bank_details($1, 'pay_${"0".repeat(26)}')`,
    "pay.redeliver($1, 'whd_1', '{}')",
    `pay.begin_trigger($1, '${TRIGGER}')`,
    "pay.end_trigger($1, 'whd_1', true, '{}')",
    "pay.change_api_key($1, 'create', 'key_1', '{}', '{}', null, null)",
    "pay.make_sandbox($1, '{}', '{}')",
    "pay.make_sandbox_key($1, 'env_1', '{}', '{}', null)",
    "pay.end_sandbox($1, 'env_1')",
  ]),
};

Deno.test("an entry function with an invalid key opens no environment", async (t) => {
  await using tenants = await startTenants();
  const { service, environments } = tenants;
  const { sql } = service;
  const revoked = await service.issueKey(environments.other);
  await sql`update pay.api_key_secrets set revoked_at = now() where api_key_id = ${revoked.id}`;
  const expired = await service.issueKey(environments.other, { expires_at: "2020-01-01" });
  const ended = await service.issueKey(environments.other);
  await sql`update pay.api_key_secrets set ends_at = now() where api_key_id = ${ended.id}`;
  const [payment] = await sql<{ id: string; sequence: number }[]>`
    select id, sequence from pay.payments where environment_id = ${environments.other}`;
  await using holder = await openSession(sql);
  await t.step("CALLS has every entry function that admits requests", async () => {
    const rows = await sql<{ proname: string }[]>`
      select proname from pg_proc
      where pronamespace = 'pay'::regnamespace and has_function_privilege('pay_api', oid, 'execute')
        and proargnames[1] in ('p_request', 'p_requests', 'p_document')
        and proname <> 'record'`;
    assert.deepEqual(rows.map(({ proname }) => proname).sort(), Object.keys(CALLS).sort());
  });
  await holder`begin`;
  for (const table of tenants.tables) {
    if (OPERATORS_TABLES.has(table)) continue;
    const column = holder.unsafe(environmentColumn(table));
    await holder`select from pay.${holder.unsafe(table)}
      where ${column} = ${environments.other} for update`;
  }
  for (const name of ["read_clock", "read_due", "set_clock", "reset_sandbox"]) {
    await t.step(`${name}: of a live environment`, async () => {
      const { text, fields } = CALLS[name]!;
      const request = requestOf(service.live, fields({ payment: payment! }));
      const rows = await sql.unsafe(`select outcome from ${text}`, [JSON.stringify([request])]);
      assert.deepEqual([...rows], [{ outcome: "live" }]);
    });
  }
  for (const [name, call] of Object.entries(CALLS)) {
    const keys = { revoked, expired, "of a sandbox that has ended": ended };
    for (const [state, key] of Object.entries(keys)) {
      await t.step(
        `${name}: ${state}`,
        () => assertOpensNothing(tenants, call, key, { payment: payment! }),
      );
    }
  }
});

/** Makes a request as an entry function takes it. */
function requestOf(key: TestKey, fields: Fields) {
  return {
    n: 1,
    key_hash: parseApiKey(key.text)!.hash,
    // The version of the settings that `startTenants` makes.
    version: 1,
    at: new Date(),
    rate: [1000, 4000],
    ...fields,
  };
}

/** Calls the function in a transaction, checks its locks and its visible rows, and rolls back. */
async function assertOpensNothing(
  tenants: Tenants,
  call: EntryCall,
  key: TestKey,
  requested: Requested,
) {
  const { service, environments } = tenants;
  const refused = requestOf(key, call.fields(requested));
  const valid = call.beside && requestOf(service.key, call.beside.fields);
  const list = valid ? [valid, refused, valid] : [refused];
  const expected = list.map((one) => one === refused ? "unauthorized" : call.beside!.outcome);
  await using session = await openSession(service.sql);
  await session`begin`;
  // A request that waits for a lock fails here, or after the lock_timeout of its function.
  await session`set local lock_timeout = '1ms'`;
  const rows = await session.unsafe(`select outcome from ${call.text}`, [
    JSON.stringify(list.map((one, i) => ({ ...one, n: i + 1 }))),
  ]);
  assert.deepEqual(rows.map(({ outcome }) => outcome), expected);
  assert.deepEqual(await locksOf(session, environments.other), []);
  const [noted] = await session`
    select last_used_at, (
      select count(*)::int from pay.rate_counters where api_key_id = ${key.id}) as counters
    from pay.api_key_secrets where api_key_id = ${key.id}`;
  assert.deepEqual(noted, { last_used_at: null, counters: 0 });
  await assertHidden(session, tenants, key);
}

/** The advisory locks of an environment that a session holds. */
async function locksOf(session: postgres.ReservedSql, environment_id: string) {
  const rows = await session<{ name: string }[]>`
    select name from unnest(array['environment ' || ${environment_id}::text,
      'keys ' || ${environment_id}::text, ${environment_id}::text, ${environment_id}::text || 'EUR'])
      as lock (name)
    join pg_locks l on l.locktype = 'advisory' and l.pid = pg_backend_pid()
      and (l.classid::bigint << 32) | l.objid::bigint = hashtextextended(name, 0)`;
  return rows.map(({ name }) => name);
}

/** Asserts that row-level security shows only the presented secret of the environment. */
async function assertHidden(session: postgres.ReservedSql, tenants: Tenants, key: TestKey) {
  await session`set local role pay_owner`;
  for (const table of tenants.tables) {
    if (OPERATORS_TABLES.has(table)) continue;
    const rows = await session<{ row: { api_key_id?: string } }[]>`
      select to_json(t) as row from pay.${session.unsafe(table)} t
      where ${session.unsafe(environmentColumn(table))} = ${tenants.environments.other}`;
    const others = rows.filter(({ row }) =>
      table !== "api_key_secrets" || row.api_key_id !== key.id
    );
    assert.equal(others.length, 0, `rows of pay.${table} are visible`);
  }
}
