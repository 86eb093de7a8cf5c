/**
 * Resets at the same time as creates, refunds and other resets. A payment exists with all its rows
 * or not at all. A reset and a refund under one idempotency key: one of them is first and has its
 * whole effect, and no response is a 503.
 */

import assert from "node:assert/strict";
import { assertSilent } from "../support/database/invariant_breaches.ts";
import { serviceCase } from "../support/service/service_case.ts";
import {
  type Ask,
  ASKS,
  raceCase,
  sizeOf,
  type TwoInstances,
} from "../support/service/two_instances.ts";

const ROUNDS = sizeOf("ROUNDS", 30);

raceCase("concurrent resets and other requests", async (t, two) => {
  await t.step(`a create exists whole or not at all, in ${ROUNDS} rounds`, async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const creates = (n: number): Ask[] =>
        Array.from({ length: n }, () => ({
          ...ASKS.create({ outcome: "refunded" }),
          idempotency_key: crypto.randomUUID(),
        }));
      await assertExplained(two, [...creates(8), ASKS.reset(), ...creates(8)]);
    }
  });
  await t.step(`a refund exists whole or not at all, in ${ROUNDS} rounds`, async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const ids = await Promise.all(
        Array.from(
          { length: 8 },
          async () => (await two.service.make({ outcome: "success" })).body.id,
        ),
      );
      const refunds = ids.map((id) => ({
        ...ASKS.refund(id, 1),
        idempotency_key: crypto.randomUUID(),
      }));
      await assertExplained(two, [...refunds, ASKS.reset(), ...refunds]);
    }
  });
  await t.step("a create that survives the reset is still replayed", async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const ask = () => ({ ...ASKS.create(), idempotency_key: crypto.randomUUID() });
      const asks = Array.from({ length: 8 }, ask);
      const told = await two.race([...asks, ASKS.reset()]);
      const alive = await paymentIds(two);
      const again = await two.race(asks);
      for (const [i, { body }] of again.entries()) {
        const { id } = told[i]!.body;
        if (alive.has(id)) assert.equal(body.id, id, "made twice");
      }
      await two.race([ASKS.reset()]);
    }
  });
  await t.step("endpoints, keys and lists stay readable during resets", async () => {
    const { service } = two;
    const endpoint = await service.post("/api-v1-payments/v1/webhook_endpoints", {
      url: "https://example.com/hook",
      events: ["*"],
    });
    const asks = [
      [`/v1/webhook_endpoints/${endpoint.id}`, 0],
      ["/v1/webhook_endpoints", 1],
      ["/v1/api_keys", 1],
      ["/v1/payments?status=pending", 0],
      ["/v1/balance", 0],
    ] as const;
    let is_over = false;
    const faults = new Set<string>();
    const looking = asks.map(async ([path, least]) => {
      while (!is_over) {
        const { status, text, body } = await service.call("GET", `/api-v1-payments${path}`);
        if (status !== 200) faults.add(`${path}: ${text}`);
        else if (least > 0 && body.data.length < least) faults.add(`${path}: nothing`);
      }
    });
    for (let i = 0; i < 2 * ROUNDS; i++) {
      const resets = await two.race(Array.from({ length: 4 }, () => ASKS.reset()));
      for (const { status, text } of resets) assert.equal(status, 200, text);
    }
    is_over = true;
    await Promise.all(looking);
    assert.deepEqual([...faults], []);
  });
});

async function assertExplained(two: TwoInstances, asks: Ask[]): Promise<void> {
  for (const { status, text } of await two.race(asks)) {
    assert.ok([200, 201, 404].includes(status), text);
  }
  await assertSilent(two.service.sql);
  // The invariants do not look at environments that a reset has retired.
  const faults = await two.service.sql`
    select 'newest event of ' || p.id as fault from pay.payments p
    where sequence <> (select max(sequence) from pay.events e
      where e.environment_id = p.environment_id and e.subject_id = p.id)
    union all
    select 'no payment for ' || t.id from (
      select environment_id, id, subject_id from pay.events
      union all select environment_id, transaction_id, subject_id from pay.ledger_movements
      union all select environment_id, id, payment_id from pay.refunds
    ) t
    where t.subject_id like 'pay\\_%' and not exists (select from pay.payments p
      where p.environment_id = t.environment_id and p.id = t.subject_id)`;
  assert.deepEqual(faults.map(({ fault }) => fault), []);
}

async function paymentIds({ service }: TwoInstances): Promise<Set<string>> {
  const rows = await service.sql<{ id: string }[]>`
    select p.id from pay.payments p join pay.environments e on e.id = p.environment_id
    where e.retired_at is null`;
  return new Set(rows.map(({ id }) => id));
}

/** Rows that a reset counts, which takes long enough for the refund to arrive. */
const FILLER = 3_000;

serviceCase("a reset and a refund under one key get 200 or 201, 404 or 409", async (_, service) => {
  // PostgreSQL then looks for deadlocks after 20 ms instead of a second, which keeps the test
  // fast.
  const [row] = await service.sql`select current_database() as name`;
  await service.sql.unsafe(`alter database "${row!.name}" set deadlock_timeout = '20ms'`);
  const seen: number[] = [];
  for (let i = 0; i < 20; i++) {
    await service.sql`
      insert into pay.payments (environment_id, id, status, amount_minor, amount_refunded, currency,
        method_kind, sequence, created_at, updated_at, body)
      select ${await service.environmentOf(
      service.key,
    )}, 'pay_0' || lpad(n::text, 25, '0'), 'pending', 1, 0, 'EUR',
        'card', 1, now(), now(), '{}'
      from generate_series(1, ${FILLER}) n on conflict do nothing`;
    const made = await service.make({ outcome: "success" });
    const idempotency_key = `round ${i}`.replace(" ", "-");
    const refund = `/api-v1-payments/v1/payments/${made.body.id}/refund`;
    const responses = await Promise.all([
      service.call("POST", refund, { idempotency_key }),
      service.call("POST", "/api-v1-sandbox/reset", { idempotency_key }),
    ]);
    seen.push(...responses.map(({ status }) => status));
  }
  assert.deepEqual(seen.filter((status) => ![200, 201, 404, 409].includes(status)), []);
});
