/**
 * Retention deletes expired rows and no others, in batches that delay no other request. A reset of
 * a large sandbox is fast and does not disturb other environments. A function with a wrong clock
 * deletes nothing early and keeps nothing forever, because the database's time decides
 * (docs/decisions/0008-what-retention-deletes.md).
 */

import assert from "node:assert/strict";
import { timed } from "../support/common/timed.ts";
import { fillSandbox } from "../support/database/filled_sandbox.ts";
import { rowCounts } from "../support/database/payment_records.ts";
import { purgeAll } from "../support/database/purge.ts";
import { RELAY_TOKEN, type TestService } from "../support/service/service.ts";
import {
  APPROVED,
  assertReplay,
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

async function counts({ count }: TestService, environment_id: string) {
  const found: Record<string, number> = {};
  for (const table of TABLES) {
    found[table] = await count(`${table} where environment_id = '${environment_id}'`);
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

/** Credits less debits of an environment's available account. */
async function available(service: TestService, environment_id: string): Promise<number> {
  const [row] = await service
    .sql`select pay_internal.available_minor(${environment_id}, 'EUR')::int as n`;
  return row!.n;
}

/** Creates payments during some work. Returns the time that each took, and the result. */
async function whileCreating<T>(service: TestService, key: string, work: () => Promise<T>) {
  let is_working = true;
  const creating = (async () => {
    const took_ms: number[] = [];
    while (is_working) {
      const { response, ms } = await timed(service.make({ outcome: "success" }, { key }));
      assert.equal(response.status, 201, response.text);
      took_ms.push(ms);
    }
    return took_ms;
  })();
  const { response: result, ms } = await timed(work()).finally(() => is_working = false);
  const took_ms = await creating;
  console.log(`${ms} ms, and ${took_ms.length} creates, the slowest ${Math.max(...took_ms)} ms`);
  return { result, ms, took_ms };
}

serviceCase("pay.purge() beside creates keeps the balance", async (_, service) => {
  await service.call("POST", ENDPOINTS, { body: { url: "http://127.0.0.1:47999/hook" } });
  const { environment_id, text } = service.key;
  await trade(service, text);
  const young = await counts(service, environment_id);
  assert.ok(Object.values(young).every((n) => n > 0), JSON.stringify(young));
  await service.setClock(Date.now() - 30.1 * DAY_MS);
  for (let i = 0; i < 20; i++) await trade(service, text);
  await trade(service, service.other.text);
  await service.setClock(null);
  assert.deepEqual([...await wrongBalances(service)], []);
  const before = await available(service, environment_id);
  const { result: calls, took_ms } = await whileCreating(
    service,
    text,
    () => purgeAll(service.sql, 7),
  );
  assert.ok(calls > 3, `${calls} calls`);
  assert.equal(await available(service, environment_id), before + 1000 * took_ms.length);
  const { payments, transfers } = await counts(service, environment_id);
  assert.deepEqual([payments, transfers], [young.payments! + took_ms.length, young.transfers]);
  const other = await counts(service, service.other.environment_id);
  assert.deepEqual(Object.values(other), TABLES.map(() => 0));
  assert.equal(await available(service, service.other.environment_id), 1000 - 10 - 200);
});

serviceCase("POST /reset of 100 000 payments", async (_t, service) => {
  const { ms: filled_ms } = await timed(
    fillSandbox(service.sql, service.key.environment_id, 100_000),
  );
  await trade(service, service.other.text);
  const before = await counts(service, service.other.environment_id);
  const { result: reset, ms: elapsed_ms, took_ms } = await whileCreating(
    service,
    service.other.text,
    () => service.call("POST", `${SANDBOX}/reset`, { idempotency_key: "reset" }),
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
    checkouts: 0,
  });
  // The reset only marks the sandbox. Deleting its rows would take most of the time of their
  // inserts.
  assert.ok(elapsed_ms < filled_ms / 2, `${elapsed_ms} ms`);
  const slowest_ms = Math.max(...took_ms);
  assert.ok(took_ms.length > 10 && slowest_ms < elapsed_ms / 2, `${slowest_ms} ms`);
  const after = await counts(service, await service.environmentOf(service.key));
  assert.deepEqual(Object.values(after), TABLES.map(() => 0));
  const { ms: purged_ms } = await timed(purgeAll(service.sql, 5_000));
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
  ["ten years ahead", 3_653 * DAY_MS],
  ["ten years behind", -3_653 * DAY_MS],
];

/** Requests that have an effect each time unless they are replayed. */
const REPEATABLE: [string, path: string, body: unknown][] = [
  ["a create", PAYMENTS, { amount: 700, currency: "EUR", outcome: "success" }],
  ["a refund", `${PAYMENTS}/{id}/refund`, { amount: 5 }],
  ["a reset", `${SANDBOX}/reset`, {}],
];

serviceCase("a wrong clock stores a response for 24 hours", async (t, service) => {
  for (const [clock, by_ms] of WRONG) {
    for (const [name, path, body] of REPEATABLE) {
      await t.step(`${name}, ${clock}`, async () => {
        const now_ms = Date.now();
        await service.setClock(now_ms);
        const { id } = await paymentIn(service, "completed");
        const idempotency_key = `${name}-${by_ms}`.replaceAll(" ", "-");
        const sendAt = async (at_ms: number, wrong_ms: number) => {
          await service.setClock(at_ms);
          service.setWrongClock(wrong_ms);
          return service.call("POST", path.replace("{id}", id), { body, idempotency_key });
        };
        const first = await sendAt(now_ms, now_ms + by_ms);
        assert.ok(first.status < 300, first.text);
        for (const wrong_ms of [now_ms, now_ms + by_ms]) {
          assertReplay(await sendAt(now_ms + DAY_MS - 1, wrong_ms), first);
        }
        const later = await sendAt(now_ms + DAY_MS, now_ms + by_ms);
        assert.equal(later.headers.get("Idempotent-Replayed"), null);
        await service.setClock(null);
      });
    }
  }
});

serviceCase("retention with a wrong clock deletes nothing early", async (t, service) => {
  await service.post(ENDPOINTS, { url: "http://127.0.0.1:47999/" });
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
    const endpoint = await service.get(`/api-v1-payments/v1/webhook_endpoints/${id}`);
    assert.equal(endpoint.status, "enabled");
  });
});
