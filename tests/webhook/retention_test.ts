/**
 * Retention (contract §5) deletes rows over 30 days old. Live payments stay, and no request waits.
 * shrunk_cases.ts has the 24 hours of idempotency keys, tests/http/retention_test.ts the batches.
 */

import assert from "node:assert/strict";
import type postgres from "postgres";
import { openSession } from "../support/database/database.ts";
import { idFloor, type IdGenerator, idGenerator } from "../../shared/core/ids.ts";
import { serviceCase } from "../support/service/service_case.ts";
import { RELAY_TOKEN, type TestKey, type TestService } from "../support/service/service.ts";
import { RETENTION } from "../support/webhook/recording_receiver.ts";

const NOW = Date.parse("2026-08-09T10:11:12.013Z");
const DAY = 86_400_000;
/** The tables that are purged by age, children first. */
const TABLES = [
  "webhook_deliveries",
  "events",
  "provider_events",
  "provider_operations",
  "ledger_movements",
  "refunds",
  "payments",
] as const;
/** The tables that are also purged in live environments. */
const OF_LIVE_TOO: readonly string[] = ["webhook_deliveries", "events"];

/** Writes one row of a payment and of everything that belongs to it, all created at `at_ms`. */
async function insertPayment(sql: postgres.Sql, environment_id: string, at_ms: number) {
  const newId: IdGenerator = idGenerator(at_ms);
  const at = new Date(at_ms).toISOString();
  const [pay, event, txn, refund] = [newId("pay_"), newId("evt_"), newId("txn_"), newId("re_")];
  await sql.begin(async (sql) => {
    await sql`insert into pay.payments (environment_id, id, status, amount_minor, amount_refunded,
        currency, method_kind, sequence, created_at, updated_at, body)
      values (${environment_id}, ${pay}, 'refunded', 5, 5, 'EUR', 'card', 1, ${at}, ${at}, '{}')`;
    await sql`insert into pay.refunds
        (environment_id, id, payment_id, amount_minor, currency, created_at, body)
      values (${environment_id}, ${refund}, ${pay}, 5, 'EUR', ${at}, '{}')`;
    await sql`insert into pay.events (environment_id, id, type, subject_id, sequence, created_at, body)
      values (${environment_id}, ${event}, 'payment.created', ${pay}, 1, ${at}, '{}')`;
    await sql`insert into pay.webhook_deliveries (environment_id, id, event_id, event_type,
        endpoint_id, subject_id, sequence, status, created_at)
      values (${environment_id}, ${newId("whd_")}, ${event}, 'payment.created', 'whe_x', ${pay}, 1,
        'delivered', ${at})`;
    await sql`insert into pay.ledger_movements (environment_id, transaction_id, leg, kind, subject_id,
        debit_account, credit_account, amount_minor, currency, created_at)
      values (${environment_id}, ${txn}, 0, 'capture', ${pay}, 'processor', 'available', 5, 'EUR',
        ${at})`;
    await sql`insert into pay.provider_operations (environment_id, id, account_id, connector, op,
        subject_id, amount_minor, currency, request, state, attempts, created_at, settled_at,
        may_repeat, api_key_id, request_id, decline_is_error)
      values (${environment_id}, ${newId("pc_")}, 'pac_1', 'stripe', 'authorize', ${pay}, 5, 'EUR',
        '{}', 'settled', 1, ${at}, ${at}, true, 'key_1', 'req_1', true)`;
    await sql`insert into pay.provider_events (environment_id, account_id, reference, op, state,
        subject_id, amount_minor, currency, happened_at, received_at, body, outcome, handled_at)
      values (${environment_id}, 'pac_1', ${`${pay}:succeeded`}, 'authorize', 'succeeded', ${pay}, 5,
        'EUR', ${at}, ${at}, '{}', 'applied', ${at})`;
  });
  return pay;
}

/** The row counts of an environment. */
async function rowsOf({ count }: TestService, { environment_id }: TestKey) {
  const counts: Record<string, number> = {};
  for (const table of TABLES) {
    counts[table] = await count(`${table} where environment_id = '${environment_id}'`);
  }
  return counts;
}

/** The row counts after a number of payments. */
function payments(count: number, live_count = count): Record<string, number> {
  return Object.fromEntries(
    TABLES.map((table) => [table, OF_LIVE_TOO.includes(table) ? count : live_count]),
  );
}

async function purge(service: TestService, at_ms: number) {
  await service.setClock(at_ms);
  return service.call("POST", RETENTION, { key: RELAY_TOKEN });
}

serviceCase("POST /internal/retention deletes rows over 30 days old", async (t, service) => {
  // At NOW the first row is over 30 days old, the second exactly 30 days, the third younger.
  for (const age of [30 * DAY + 1, 30 * DAY, 30 * DAY - 1]) {
    await insertPayment(service.sql, service.key.environment_id, NOW - age);
    await insertPayment(service.sql, service.other.environment_id, NOW - age);
    await insertPayment(service.sql, service.live.environment_id, NOW - age);
  }
  await t.step("a millisecond before, no row is old enough", async () => {
    const response = await purge(service, NOW - 1);
    assert.deepEqual([response.status, response.body], [200, { purged: 0 }]);
    assert.deepEqual(await rowsOf(service, service.key), payments(3));
  });
  await t.step("every sandbox loses its older rows", async () => {
    const response = await purge(service, NOW);
    assert.deepEqual(response.body, { purged: 2 * TABLES.length + 2 });
    assert.deepEqual(await rowsOf(service, service.key), payments(2));
    assert.deepEqual(await rowsOf(service, service.other), payments(2));
  });
  await t.step("a live environment loses events and deliveries, but no money", async () => {
    assert.deepEqual(await rowsOf(service, service.live), payments(2, 3));
  });
  await t.step("a millisecond later the next rows are old enough", async () => {
    assert.deepEqual((await purge(service, NOW + 1)).body, { purged: 2 * TABLES.length + 2 });
    assert.deepEqual(await rowsOf(service, service.key), payments(1));
  });
  await t.step("in the end sandboxes are empty, and all live payments are there", async () => {
    assert.deepEqual((await purge(service, NOW + 1)).body, { purged: 0 });
    await purge(service, NOW + 40 * DAY);
    assert.deepEqual(await rowsOf(service, service.key), payments(0));
    assert.deepEqual(await rowsOf(service, service.live), payments(0, 3));
  });
});

serviceCase("pay.purge() keeps a refund while its payment has an event", async (_, service) => {
  const { sql, key: { environment_id } } = service;
  const payment = await insertPayment(sql, environment_id, NOW - 31 * DAY);
  const event = idGenerator(NOW - 10 * DAY)("evt_");
  await sql`insert into pay.events (environment_id, id, type, subject_id, sequence, created_at, body)
    values (${environment_id}, ${event}, 'dispute.updated', ${payment}, 2, now(), '{}')`;
  await purge(service, NOW);
  const kept = { ...payments(0), events: 1, refunds: 1, payments: 1 };
  assert.deepEqual(await rowsOf(service, service.key), kept);
  await purge(service, NOW + 21 * DAY);
  assert.deepEqual(await rowsOf(service, service.key), payments(0));
});

serviceCase("autovacuum follows retention at 2 % of each table", async (_, { sql }) => {
  // Until a vacuum each batch reads the index entries of all rows that were deleted before.
  const rows = await sql<{ name: string }[]>`
    select relname as name from pg_class
    where relnamespace = 'pay'::regnamespace and reloptions && '{autovacuum_vacuum_scale_factor=0.02}'`;
  const names = new Set(rows.map(({ name }) => name));
  // The others have few rows beside payments.
  const due = TABLES.filter((name) => !/^(refunds|provider_)/.test(name));
  assert.deepEqual(
    [...due, "idempotency_keys", "attempt_log"].filter((name) => !names.has(name)),
    [],
  );
});

serviceCase("pay.purge() leaves a locked row to the next purge", async (_, service) => {
  const { environment_id } = service.key;
  const held = await insertPayment(service.sql, environment_id, NOW - 31 * DAY);
  await insertPayment(service.sql, environment_id, NOW - 31 * DAY);
  await using purger = await openSession(service.sql);
  const purgeOnce = async () => {
    await purger`select pay.purge(${new Date(NOW).toISOString()})`;
    return (await rowsOf(service, service.key)).payments;
  };
  await purger`set lock_timeout = '1s'`;
  await service.sql.begin(async (sql) => {
    await sql`select from pay.payments where id = ${held} for update`;
    assert.equal(await purgeOnce(), 1);
  });
  assert.equal(await purgeOnce(), 0);
});

serviceCase("pay_internal.id_floor() equals idFloor()", async (_, { sql }) => {
  const times = [0, 1, 31, 32, 33, 1023, 1024, NOW - 1, NOW, NOW + 1, Date.now(), 4e12, 3.2e13];
  for (const at_ms of times) {
    const [row] = await sql`
      select pay_internal.id_floor('evt_', ${new Date(at_ms).toISOString()}::timestamptz) as floor`;
    assert.equal(row!.floor, idFloor("evt_", at_ms));
    const made = idGenerator(at_ms)("evt_");
    assert.ok(made >= row!.floor && (at_ms === 0 || idGenerator(at_ms - 1)("evt_") < row!.floor));
  }
});
