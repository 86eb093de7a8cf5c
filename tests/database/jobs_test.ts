/**
 * Rows that the jobs must leave out: the provider worker, retention, stored provider events and log
 * entries of requests handle all others. With a bad row the statement of a loop fails. No job
 * touches the rows of an account that arrives from another cell (supabase/schemas/moves.sql),
 * although work of every kind is due; the same calls do the work once the account is open.
 */

import assert from "node:assert/strict";

import { digestOf, tenantTables } from "../../apps/operator/cells_database.ts";
import { RequestLog, type RequestLogEntry, writeTo } from "../../shared/store/request_log.ts";
import { fillSandbox } from "../support/database/filled_sandbox.ts";
import { saidBy } from "../support/database/invariant_breaches.ts";
import { poison, POISON_CODE, poisonFunction } from "../support/database/poison.ts";
import {
  addAccount,
  providerCase,
  reserve,
  type Reserved,
  succeeded,
} from "../support/database/provider_flow.ts";
import { openPool } from "../support/database/store_access.ts";
import { purgeAll } from "../support/database/purge.ts";
import { SANDBOX, serviceCase } from "../support/service/service_case.ts";
import { environmentColumn, OPERATORS_TABLES, startTenants } from "../support/service/tenants.ts";
import { insertEndpoint } from "../support/webhook/dispatcher_polls.ts";

const LEASE_MS = 30_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

providerCase("pay.lease_provider_work() with work that cannot be read", async (t, given) => {
  const { service, sql, live, functions, store } = given;
  let now = Date.now();
  const account_id = await addAccount(sql, live.environment_id);
  const made: Reserved[] = [];
  for (let i = 0; i < 3; i++) made.push(await reserve(functions, live));
  const bad = made[1]!.operation.id;
  const work = async (after_ms: number) => {
    await service.setClock(now += after_ms);
    const { work, given_up } = await store.leaseWork(100, 100, LEASE_MS, now);
    return {
      operations: work.flatMap(({ kind, operation }) => kind === "operation" ? [operation!.id] : [])
        .sort(),
      kinds: [...new Set(work.map(({ kind }) => kind))].sort(),
      given_up: given_up.map(({ subject, code }) => `${subject} ${code}`),
    };
  };
  await poisonFunction(sql, {
    name: "provider_operation_json",
    when: `p_operation.id = '${bad}'`,
  });
  await t.step("a bad operation is given up until its lease ends, others are got", async () => {
    const good = made.filter(({ operation }) => operation.id !== bad).map(({ operation }) =>
      operation.id
    );
    const first = await work(LEASE_MS);
    assert.deepEqual(first.operations, good.sort());
    assert.deepEqual(first.given_up, [`operation ${bad} ${POISON_CODE}`]);
    const second = await work(0);
    assert.deepEqual([second.operations, second.given_up], [[], []]);
    assert.deepEqual((await work(LEASE_MS)).given_up, [`operation ${bad} ${POISON_CODE}`]);
  });
  await t.step("a kind that cannot be leased leaves the other kinds", async () => {
    await store.storeProviderEvents(account_id, made.map((one) => succeeded(one)));
    const end = await poison(sql, {
      table: "provider_operations",
      on: "update",
      when: "new.leased_until is distinct from old.leased_until",
    });
    const { kinds, given_up } = await work(HOUR_MS);
    assert.deepEqual(kinds, ["event", "poll"]);
    assert.ok(given_up.includes(`operation all ${POISON_CODE}`), `${given_up}`);
    await end();
  });
});

providerCase("storeProviderEvents() stores all but a bad one", async (_, given) => {
  const { sql, live, functions, store } = given;
  const account_id = await addAccount(sql, live.environment_id);
  const provider_events = [];
  for (let i = 0; i < 3; i++) provider_events.push(succeeded(await reserve(functions, live)));
  await poison(sql, {
    table: "provider_events",
    on: "insert",
    when: `new.reference = '${provider_events[1]!.reference}'`,
  });
  await assert.rejects(store.storeProviderEvents(account_id, provider_events), {
    code: POISON_CODE,
  });
  const rows = await sql`select reference from pay.provider_events order by 1`;
  assert.deepEqual(
    rows.map(({ reference }) => reference),
    [provider_events[0]!.reference, provider_events[2]!.reference].sort(),
  );
});

serviceCase("an entry that cannot be written is lost alone", async (_, service) => {
  await using database = openPool({ url: service.database.functions_url });
  const lost: number[] = [];
  const request_log = new RequestLog(writeTo(database, null), (count) => lost.push(count));
  await service.pay({}, { idempotency_key: "good" });
  await service.pay({}, { idempotency_key: "bad" });
  await poison(service.sql, { table: "requests", on: "insert", when: "new.path = '/bad'" });
  const { environment_id, id: api_key_id } = service.key;
  for (let i = 0; i < 5; i++) {
    request_log.logRequest(
      {
        environment_id,
        api_key_id,
        id: `req_${String(i).padStart(26, "0")}`,
        method: "GET",
        path: i === 2 ? "/bad" : "/good",
        status: 200,
        duration_us: 1,
        at: new Date().toISOString(),
      } satisfies RequestLogEntry,
    );
  }
  request_log.countReplay(environment_id, api_key_id, "good");
  await request_log.close();
  assert.deepEqual(lost, [1]);
  const rows = await service.sql`select path from pay.requests`;
  assert.deepEqual(rows.map(({ path }) => path), Array(4).fill("/good"));
  const [key] = await service.sql`select replays from pay.idempotency_keys where key = 'good'`;
  assert.equal(key!.replays, 1);
});

/** Tables that retention empties, in steps for all environments or for each of them. */
const PURGED = [
  "idempotency_keys",
  "attempt_log",
  "sandboxes",
  "rate_counters",
  "payments",
  "events",
  "requests",
];

/** Tables of which only live environments have rows, and those without rows of a tenant. */
const KEPT = new Set([
  ...["bank_entries", "bank_exports", "bank_files", "bank_orders"],
  ...["provider_accounts", "provider_cursors", "provider_methods", "provider_totals"],
  ...OPERATORS_TABLES,
]);

Deno.test("pay.purge() with a row that cannot be deleted", async (t) => {
  await using tenants = await startTenants();
  const { service, environments: { own, other }, tables } = tenants;
  const { sql } = service;
  const count = async (table: string, environment_id: string) => {
    const [row] = await sql.unsafe(
      `select count(*)::int as n from pay.${table} where ${environmentColumn(table)} = $1`,
      [environment_id],
    );
    return row!.n;
  };
  await service.setClock(Date.now() + 40 * DAY_MS);
  for (const table of PURGED) {
    assert.ok(await count(table, own) > 0, table);
    assert.ok(await count(table, other) > 0, table);
  }
  const ends: (() => Promise<void>)[] = [];
  for (const table of PURGED) {
    ends.push(
      await poison(sql, {
        table,
        on: "delete",
        when: `old.environment_id = '${own}'`,
      }),
    );
  }
  await purgeAll(sql);
  for (const table of PURGED) {
    await t.step(`${table}: those of others are deleted`, async () => {
      assert.equal(await count(table, other), 0);
      assert.ok(await count(table, own) > 0);
    });
  }
  await t.step("without it everything is deleted", async () => {
    for (const end of ends) await end();
    await purgeAll(sql);
    for (const table of PURGED) assert.equal(await count(table, own), 0, table);
  });
  await t.step("a retired environment goes with its rows in every table", async () => {
    await sql`update pay.environments set retired_at = now() where id = ${own}`;
    await purgeAll(sql);
    for (const table of tables.filter((name) => !KEPT.has(name))) {
      assert.equal(await count(table, own), 0, table);
    }
  });
});

serviceCase("pay.purge() with a sandbox that cannot be ended", async (_, service) => {
  const make = async () =>
    (await service.call("POST", `${SANDBOX}/sandboxes`, { body: { expires_in: 60 } })).body.id;
  const [bad, good] = [await make(), await make()];
  await poison(service.sql, { table: "environments", on: "update", when: `new.id = '${bad}'` });
  await service.setClock(Date.now() + 120_000);
  await service.sql`select pay.purge(pay_internal.server_time())`;
  await service.sql`select pay.purge(pay_internal.server_time())`;
  const rows = await service.sql`select id from pay.environments where id in (${bad}, ${good})`;
  assert.deepEqual(rows.map(({ id }) => id), [bad]);
});

serviceCase("pay.purge() of many retired sandboxes that stay full", async (_, service) => {
  const { sql } = service;
  await sql`
      insert into pay.environments (id, public_id, account, livemode, name, retired_at)
      select i.id, i.id, 'a', false, case when n <= 60 then 'bad' else 'good' end,
        pay_internal.server_time() + n * interval '1 second'
      from generate_series(1, 61) n, lateral (select 'env_' || lpad(n::text, 26, '0') as id) i`;
  await poison(sql, { table: "environments", on: "delete", when: "old.name = 'bad'" });
  for (let i = 0; i < 20; i++) await sql`select pay.purge(pay_internal.server_time())`;
  const left = await sql`
      select e.name, count(*)::int as n from pay.environments e
      where e.retired_at is not null group by e.name`;
  assert.deepEqual([...left], [{ name: "bad", n: 60 }]);
});

const ENDED = `env_${"1".repeat(26)}`;
const CLOCK = `env_${"2".repeat(26)}`;
const TARGET = new Date(Date.now() + 86_400_000).toISOString();

providerCase("nothing touches an arriving environment", async (t, given) => {
  const { service, sql, live, key, functions, store } = given;
  const { other } = service;
  /** The state of all environments: their own rows, and the digests of their tables. */
  const stateOf = async () => {
    const database = { side: "target" as const, url: service.database.url, sql };
    const environments = await sql`select id, retired_at from pay.environments order by 1`;
    const ids = environments.map(({ id }) => id);
    const digests = new Map<string, unknown>([["environments", environments]]);
    for (const table of await tenantTables(database)) {
      digests.set(table.name, await digestOf(database, table, ids));
    }
    return digests;
  };
  /** Each job, and its result with environments that arrive, and with the same ones when open. */
  const jobs: [name: string, work: () => Promise<unknown>, arriving: unknown, open: unknown][] = [
    [
      "the dispatcher",
      async () => {
        const rows = await sql<{ id: string }[]>`
          select d.id from pay.poll_deliveries(p_results => '{}', p_capacity => '{}', p_limit => 9,
            p_per_endpoint => 9, p_per_environment => 9, p_per_account => 9, p_poison_ahead => '{}',
            p_at => now(), p_leased_until => now() + interval '25 s') d order by 1`;
        return rows.map(({ id }) => id.slice(-1)).join();
      },
      "",
      // The last one is the poison delivery.
      "1,2,3,4,6",
    ],
    [
      "the provider worker",
      async () => {
        const { work } = await store.leaseWork(9, 9, LEASE_MS, Date.now());
        return work.map(({ kind }) => kind).sort().join();
      },
      "",
      "event,operation,poll,sync",
    ],
    [
      "retention",
      async () => {
        await sql`select pay.purge()`;
        const [row] = await sql`select
          (select count(*) from pay.idempotency_keys where environment_id = ${key.environment_id})
            as keys,
          (select count(*) from pay.payments where environment_id = ${other.environment_id})
            as retired,
          (select count(*) from pay.environments where id = ${ENDED} and retired_at is null)
            as ended, (select count(*) from pay.attempt_log) as attempts`;
        return { ...row };
      },
      { keys: "3", retired: "3", ended: "1", attempts: "6" },
      { keys: "2", retired: "0", ended: "0", attempts: "0" },
    ],
    [
      "a step of a clock",
      async () => {
        const target = JSON.stringify({ target: TARGET });
        const [row] = await sql`select state from pay.step_clock(${CLOCK}, ${target}, true)`
          .catch((error) => [{ state: error.code }]);
        return row!.state;
      },
      "55P03",
      "moved",
    ],
    ["the check of the books", async () => (await saidBy(sql)).length > 0, false, true],
  ];
  await fillSandbox(sql, key.environment_id, 3);
  await insertEndpoint(service);
  // The last payment has a poison delivery.
  await sql`update pay.webhook_deliveries set status = 'pending',
    next_attempt_at = now() - interval '1 hour',
    expired_leases = (subject_id = (select max(id) from pay.payments))::int`;
  await sql`update pay.idempotency_keys set created_at = now() - interval '3 days'
    where key = '1'`;
  await sql`
    insert into pay.attempt_log (environment_id, delivery_id, slot, attempt, url, headers,
      response_truncated, stored_at)
    select d.environment_id, d.id, 0, 1, 'https://example.com/', '', false, '2026-01-01'
    from pay.webhook_deliveries d`;
  await fillSandbox(sql, other.environment_id, 3);
  await sql`update pay.environments set retired_at = now() where id = ${other.environment_id}`;
  for (const id of [ENDED, CLOCK]) {
    await sql`
      insert into pay.environments (id, public_id, account, livemode, name, ends_at)
      values (${id}, ${id}, 'arrives', false, 'disposable',
        ${id === ENDED ? sql`now() - interval '1 hour'` : null})`;
  }
  await sql`insert into pay.sandbox_settings (environment_id, version, frozen_at, target_at)
    values (${CLOCK}, 1, now(), ${TARGET})`;
  const account_id = await addAccount(sql, live.environment_id);
  await reserve(functions, live, { delay_ms: 0 });
  const synced = await reserve(functions, live);
  await sql`update pay.provider_operations set state = 'operator', next_attempt_at = null,
    leased_until = null, next_sync_at = now() where id = ${synced.operation.id}`;
  const { outcome: _, exception: __, booked_minor: ___, ...event } = succeeded(
    await reserve(functions, live),
  );
  await store.storeProviderEvents(account_id, [{ ...event, state: "pending" }]);

  await sql`update pay.environments set moving = 'arriving'`;
  const before = await stateOf();
  for (const [name, work, arriving] of jobs) {
    await t.step(`${name} leaves it alone`, async () => {
      assert.deepEqual(await work(), arriving);
      assert.deepEqual(await stateOf(), before);
    });
  }
  await sql`update pay.environments set moving = null`;
  for (const [name, work, _, open] of jobs) {
    await t.step(`${name} had work there`, async () => assert.deepEqual(await work(), open));
  }
});
