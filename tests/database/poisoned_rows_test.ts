/**
 * A row with which the statement of a loop fails: the provider worker, retention, stored provider
 * events and log entries of requests leave it out, and handle all others.
 */

import assert from "node:assert/strict";
import { RequestLog, type RequestLogEntry, writeTo } from "../../shared/store/request_log.ts";
import { openDatabase } from "../../shared/store/database.ts";
import { poison, POISON_CODE, poisonFunction } from "../support/database/poison.ts";
import {
  addAccount,
  providerCase,
  reserve,
  type Reserved,
  succeeded,
} from "../support/database/provider_flow.ts";
import { SANDBOX, serviceCase } from "../support/service/service_case.ts";
import { startTenants } from "../support/service/tenants.ts";

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
  const database = openDatabase({ url: service.database.functions_url });
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
  try {
    await request_log.close();
  } finally {
    await database.close();
  }
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

Deno.test("pay.purge() with a row that cannot be deleted", async (t) => {
  const { service, environments: { own, other } } = await startTenants();
  const { sql } = service;
  const count = async (table: string, environment_id: string) => {
    const [row] = await sql.unsafe(
      `select count(*)::int as n from pay.${table} where environment_id = $1`,
      [environment_id],
    );
    return row!.n;
  };
  const purgeAll = async () => {
    for (let rows = 1; rows > 0;) {
      const [row] = await sql`select pay.purge(pay_internal.server_time())::int as rows`;
      rows = row!.rows;
    }
  };
  try {
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
    await purgeAll();
    for (const table of PURGED) {
      await t.step(`${table}: those of others are deleted`, async () => {
        assert.equal(await count(table, other), 0);
        assert.ok(await count(table, own) > 0);
      });
    }
    await t.step("without it everything is deleted", async () => {
      for (const end of ends) await end();
      await purgeAll();
      for (const table of PURGED) assert.equal(await count(table, own), 0, table);
    });
  } finally {
    await service.close();
  }
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

serviceCase(
  "pay.purge() with many retired sandboxes that cannot be emptied",
  async (_, service) => {
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
  },
);
