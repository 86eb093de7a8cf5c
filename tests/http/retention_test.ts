/**
 * Retention deletes expired rows and no others, in batches that delay no other request. A reset of
 * a large sandbox is fast and does not disturb other environments. A function with a wrong clock
 * deletes nothing early and keeps nothing forever, because the database's time decides
 * (docs/decisions/0008-what-retention-deletes.md).
 */

import assert from "node:assert/strict";
import postgres from "postgres";
import { fillSandbox } from "../support/database/filled_sandbox.ts";
import { rowCounts } from "../support/database/payment_records.ts";
import { purgeAll } from "../support/database/purge.ts";
import { RELAY_TOKEN, type TestService } from "../support/service/service.ts";
import {
  APPROVED,
  paymentIn,
  PAYMENTS,
  SANDBOX,
  serviceCase,
} from "../support/service/service_case.ts";
import { addEndpoint, RETENTION, settle } from "../support/webhook/recording_receiver.ts";
import { webhookCase } from "../support/webhook/webhook_case.ts";

const TRANSFERS = "/api-v1-payments/v1/transfers";
const ENDPOINTS = "/api-v1-payments/v1/webhook_endpoints";
const DAY_MS = 86_400_000;
/** The tables with a sandbox's data, by their names in the schema. */
const TABLES = [
  "payments",
  "refunds",
  "transfers",
  "ledger_movements",
  "events",
  "webhook_deliveries",
] as const;

/** A payment with a partial refund, and two transfers: one completed, one pending. */
async function trade(service: TestService, key: string): Promise<void> {
  const paid = await service.make({ amount_minor: 1000, outcome: "success" }, { key });
  await service.call("POST", `${PAYMENTS}/${paid.body.id}/refund`, { key, body: { amount: 10 } });
  const body = { amount: 100, currency: "EUR", destination: APPROVED.sepa };
  await service.call("POST", TRANSFERS, { key, body });
  await service.call("POST", TRANSFERS, { key, body: { ...body, settlement: "manual" } });
}

async function counts(service: TestService, environment_id: string) {
  const found: Record<string, number> = {};
  for (const table of TABLES) {
    const [row] = await service.sql.unsafe(
      `select count(*)::int as n from pay.${table} where environment_id = $1`,
      [environment_id],
    );
    found[table] = row!.n;
  }
  return found;
}

/** Balances that differ from the sum of the existing entries, a row for each difference. */
function wrongBalances(service: TestService) {
  return service.sql`
    with entries as (
      select environment_id, currency, account,
        coalesce(sum(amount_minor) filter (where direction = 'debit'), 0) as debits_minor,
        coalesce(sum(amount_minor) filter (where direction = 'credit'), 0) as credits_minor
      from pay.ledger_entries group by 1, 2, 3
    ),
    shown as (
      select e.id as environment_id, s.* from pay.environments e, pay_internal.account_sums(e.id) s
      where (s.debits_minor, s.credits_minor) <> (0, 0)
    )
    (table shown except table entries) union all (table entries except table shown)`;
}

/** The totals of the accounts of every environment. */
async function sums(service: TestService) {
  return [
    ...await service.sql`
      select e.id, s.* from pay.environments e, pay_internal.account_sums(e.id) s order by 1, 2, 3`,
  ];
}

/** Credits less debits of an environment's available account. */
async function available(service: TestService, environment_id: string): Promise<number> {
  const [row] = await service
    .sql`select pay_internal.available_minor(${environment_id}, 'EUR')::int as n`;
  return row!.n;
}

serviceCase("pay.purge()", async (t, service) => {
  const hook = { url: "http://127.0.0.1:47999/hook" };
  const endpoint = await service.call("POST", ENDPOINTS, { body: hook });
  const { environment_id } = service.key;
  await t.step("rows younger than 30 days stay", async () => {
    await service.setClock(Date.now() - 29.9 * DAY_MS);
    await trade(service, service.key.text);
    const before = await counts(service, environment_id);
    assert.ok(Object.values(before).every((n) => n > 0), JSON.stringify(before));
    await purgeAll(service.sql, 1000);
    assert.deepEqual(await counts(service, environment_id), before);
  });
  await t.step(
    "older rows are deleted in batches, and the balance keeps their amounts",
    async () => {
      const young = await counts(service, environment_id);
      await service.setClock(Date.now() - 30.1 * DAY_MS);
      for (let i = 0; i < 10; i++) {
        await trade(service, service.key.text);
      }
      await trade(service, service.other.text);
      await service.setClock(null);
      assert.deepEqual([...await wrongBalances(service)], []);
      const before = await sums(service);
      const calls = await purgeAll(service.sql, 7);
      assert.ok(calls > 3, `${calls} calls`);
      assert.deepEqual(await counts(service, environment_id), young);
      const other = await counts(service, service.other.environment_id);
      assert.deepEqual(Object.values(other), TABLES.map(() => 0));
      assert.deepEqual(await sums(service), before);
      assert.equal(await available(service, environment_id), 11 * (1000 - 10 - 200));
    },
  );
  await t.step("creates continue during a purge, and the balance counts each", async () => {
    await service.setClock(Date.now() - 31 * DAY_MS);
    for (let i = 0; i < 20; i++) await trade(service, service.key.text);
    await service.setClock(null);
    const before = await available(service, environment_id);
    let is_purging = true;
    const writing = (async () => {
      const took_ms: number[] = [];
      while (is_purging) {
        const started = performance.now();
        const response = await service.make({ outcome: "success" });
        assert.equal(response.status, 201, response.text);
        took_ms.push(performance.now() - started);
      }
      return took_ms;
    })();
    await purgeAll(service.sql, 3).finally(() => is_purging = false);
    const took_ms = await writing;
    console.log(
      `${took_ms.length} creates during a purge, ${Math.round(Math.max(...took_ms))} ms at most`,
    );
    assert.ok(took_ms.length > 5);
    assert.equal(await available(service, environment_id), before + 1000 * took_ms.length);
  });
  await t.step("a purge does not wait for another purge", async () => {
    // The dispatcher locks the rows of deliveries, and a purge leaves out locked rows.
    await service.call("DELETE", `${ENDPOINTS}/${endpoint.body.id}`);
    await service.setClock(Date.now() - 31 * DAY_MS);
    await trade(service, service.key.text);
    await trade(service, service.other.text);
    await service.setClock(null);
    const first = await service.sql.reserve();
    const second = await service.sql.reserve();
    try {
      await first`begin`;
      const [deleted] = await first`select pay.purge()::int as rows`;
      assert.ok(deleted!.rows > 0);
      // A purge that waits for a lock fails here.
      await second`set lock_timeout = '1ms'`;
      const [left] = await second`select pay.purge()::int as rows`;
      assert.equal(left!.rows, 0);
      await first`rollback`;
      // A purge leaves a locked row to the next one.
      let rest = 0;
      for (let rows = 1; rows > 0; rest += rows) {
        rows = (await second`select pay.purge()::int as rows`)[0]!.rows;
      }
      assert.equal(rest, deleted!.rows);
    } finally {
      await first`rollback`;
      await second`reset lock_timeout`;
      first.release();
      second.release();
    }
  });
  await t.step("rows of a live environment stay", async () => {
    const [row] = await service.sql`
      insert into pay.payments
        (environment_id, id, status, amount_minor, amount_refunded, currency, method_kind, sequence,
          created_at, updated_at, body)
      values (${service.live.environment_id}, ${`pay_${
      "0".repeat(26)
    }`}, 'pending', 1, 0, 'EUR', 'card',
        1, now(), now(), '{}')
      returning id`;
    await purgeAll(service.sql, 1000);
    const left = await service.sql`select from pay.payments where id = ${row!.id}`;
    assert.equal(left.count, 1);
  });
});

serviceCase("POST /reset of 100 000 payments", async (_t, service) => {
  const filling = performance.now();
  await fillSandbox(service.sql, service.key.environment_id, 100_000);
  const filled_ms = performance.now() - filling;
  await trade(service, service.other.text);
  const before = await counts(service, service.other.environment_id);
  let is_resetting = true;
  const writing = (async () => {
    const took_ms: number[] = [];
    while (is_resetting) {
      const started = performance.now();
      const made = await service.make({ outcome: "success" }, { key: service.other.text });
      assert.equal(made.status, 201, made.text);
      took_ms.push(performance.now() - started);
    }
    return took_ms;
  })();
  const started = performance.now();
  const reset = await service.call("POST", `${SANDBOX}/reset`, { idempotency_key: "reset" });
  const elapsed_ms = Math.round(performance.now() - started);
  is_resetting = false;
  const took_ms = await writing;
  const slowest_ms = Math.round(Math.max(...took_ms));
  console.log(
    `filled in ${
      Math.round(filled_ms)
    } ms; reset: ${elapsed_ms} ms; meanwhile elsewhere ${took_ms.length} creates, ${slowest_ms} ms at most`,
  );
  assert.equal(reset.status, 200, reset.text);
  assert.deepEqual(reset.body.deleted, {
    payments: 100_000,
    refunds: 0,
    transfers: 0,
    ledger_entries: 200_000,
    events: 200_000,
    webhook_deliveries: 200_000,
    idempotency_keys: 100_000,
    webhook_endpoints: 0,
    instruments: 0,
  });
  // The reset only marks the sandbox. Deleting its rows would take most of the time of their
  // inserts.
  assert.ok(elapsed_ms < filled_ms / 2, `${elapsed_ms} ms`);
  assert.ok(
    took_ms.length > 10 && slowest_ms < elapsed_ms / 2,
    `${took_ms.length}, ${slowest_ms} ms`,
  );
  const after = await counts(service, await service.environmentOf(service.key));
  assert.deepEqual(Object.values(after), TABLES.map(() => 0));
  const purging = performance.now();
  await purgeAll(service.sql, 5_000);
  const purged_ms = Math.round(performance.now() - purging);
  console.log(`its rows were purged in ${purged_ms} ms`);
  // A generous bound: a purge takes minutes if a batch reads more than its own rows.
  assert.ok(purged_ms < 2 * filled_ms, `${purged_ms} ms`);
  const emptied = await counts(service, service.key.environment_id);
  assert.deepEqual(Object.values(emptied), TABLES.map(() => 0));
  const other = await counts(service, service.other.environment_id);
  assert.equal(other.payments, before.payments! + took_ms.length);
  assert.equal(other.transfers, before.transfers);
  assert.deepEqual([...await wrongBalances(service)], []);
});

/** The lead of the clock; a negative one is a delay. */
const WRONG: [name: string, by_ms: number][] = [
  ["a day ahead", DAY_MS + 1_000],
  ["ten years ahead", 3_653 * DAY_MS],
  ["two days behind", -2 * DAY_MS],
  ["ten years behind", -3_653 * DAY_MS],
];

/** Requests that have an effect each time unless they are replayed. */
const REPEATABLE: [string, path: string, body: unknown, from: string | null][] = [
  ["a create", PAYMENTS, { amount: 700, currency: "EUR", outcome: "success" }, null],
  ["a sandbox create", `${SANDBOX}/payments`, { amount_minor: 7, currency: "EUR" }, null],
  ["a refund", `${PAYMENTS}/{id}/refund`, { amount: 5 }, "completed"],
  ["a transfer", "/api-v1-payments/v1/transfers", {
    amount: 5,
    currency: "EUR",
    destination: { iban: "DE89370400440532013000" },
  }, "completed"],
  [
    "an endpoint",
    "/api-v1-payments/v1/webhook_endpoints",
    { url: "http://127.0.0.1:47999/" },
    null,
  ],
  ["an API key", "/api-v1-payments/v1/api_keys", { name: "other" }, null],
  ["a reset", `${SANDBOX}/reset`, {}, null],
];

serviceCase("a wrong clock replays each keyed request", async (t, service) => {
  for (const [clock, by_ms] of WRONG) {
    for (const [name, path, body, from] of REPEATABLE) {
      for (const wrong_first of [false, true]) {
        const when = wrong_first ? "the first request's" : "the retry's";
        await t.step(`${name}, ${when} clock ${clock}`, async () => {
          await service.setClock(null);
          const id = from === null ? "" : (await paymentIn(service, from)).id;
          const idempotency_key = `${name}-${by_ms}-${wrong_first}`.replaceAll(" ", "-");
          const send = (is_wrong: boolean) => {
            service.setWrongClock(Date.now() + (is_wrong ? by_ms : 0));
            return service.call("POST", path.replace("{id}", id), { body, idempotency_key });
          };
          const first = await send(wrong_first);
          assert.ok(first.status < 300, first.text);
          const retry = await send(!wrong_first);
          assert.deepEqual(
            [retry.text, retry.headers.get("Idempotent-Replayed")],
            [first.text, "true"],
          );
        });
      }
    }
  }
});

serviceCase("a clock ten years ahead stores a response for 24 hours", async (_, service) => {
  const now_ms = Date.now();
  await service.setClock(now_ms);
  service.setWrongClock(now_ms + 3_653 * DAY_MS);
  const first = await service.pay({}, { idempotency_key: "ahead" });
  await service.setClock(now_ms + DAY_MS - 1);
  assert.equal((await service.pay({}, { idempotency_key: "ahead" })).text, first.text);
  await service.setClock(now_ms + DAY_MS);
  const later = await service.pay({}, { idempotency_key: "ahead" });
  assert.notEqual(later.body.id, first.body.id);
});

serviceCase("retention with a wrong clock deletes nothing early", async (t, service) => {
  await service.call("POST", "/api-v1-payments/v1/webhook_endpoints", {
    body: { url: "http://127.0.0.1:47999/" },
  });
  await service.make({ outcome: "refunded" }, { idempotency_key: "kept" });
  const before = await rowCounts(service);
  for (const [clock, by_ms] of WRONG) {
    await t.step(clock, async () => {
      service.setWrongClock(Date.now() + by_ms);
      const response = await service.call("POST", RETENTION, { key: RELAY_TOKEN });
      assert.deepEqual([response.status, response.body], [200, { purged: 0 }]);
      assert.deepEqual(await rowCounts(service), before);
    });
  }
});

webhookCase("a dispatcher whose clock is ahead", async (t, service, hooks) => {
  const { id } = await addEndpoint(service, hooks.url("/"));
  hooks.judge = () => 500;
  await t.step("makes no retry before its time", async () => {
    await service.make({ outcome: "pending" });
    await settle(service);
    assert.equal(hooks.arrivals.length, 1);
    service.setWrongClock(Date.now() + 3_653 * DAY_MS);
    await settle(service);
    assert.equal(hooks.arrivals.length, 1);
  });
  await t.step("makes a first attempt at once, and the next within the schedule", async () => {
    await service.make({ outcome: "pending" });
    await settle(service);
    assert.equal(hooks.arrivals.length, 2);
    const [row] = await service.sql`
      select count(*)::int as waiting, max(next_attempt_at) < now() + interval '1 hour' as is_soon
      from pay.webhook_deliveries where status = 'pending' and leased_until is null`;
    assert.deepEqual({ ...row }, { waiting: 2, is_soon: true });
  });
  await t.step("disables no endpoint that has just begun to fail", async () => {
    const endpoint = await service.call("GET", `/api-v1-payments/v1/webhook_endpoints/${id}`);
    assert.equal(endpoint.body.status, "enabled");
  });
});

serviceCase("pay_internal.server_time() is the database's time", async (t, { database }) => {
  await t.step("pay_api can neither replace nor call it", async () => {
    const functions = postgres(database.functions_url, { max: 1, onnotice: () => {} });
    try {
      await assert.rejects(
        functions`create or replace function pay_internal.server_time() returns timestamptz
          language sql stable parallel safe as 'select pg_catalog.now()'`,
        { code: "42501" },
      );
      await assert.rejects(functions`select pay_internal.server_time()`, { code: "42501" });
    } finally {
      await functions.end();
    }
  });
});
