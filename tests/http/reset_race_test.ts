/**
 * A reset at the same time as changes of the sandbox. It waits for changes in progress and deletes
 * their rows too. Later requests wait for the reset, and their rows stay. A lock holds a refund in
 * the middle of its commit.
 */

import assert from "node:assert/strict";
import type { TestService } from "../support/service/service.ts";
import { PAYMENTS, SANDBOX, serviceCase } from "../support/service/service_case.ts";
import { purgeAll } from "../support/database/purge.ts";
import { untilWaiting } from "../support/database/lock_waits.ts";

serviceCase("POST /reset and concurrent changes of one sandbox", async (t, service) => {
  const old = await service.make({ amount_minor: 1000, outcome: "success" });
  const before = await service.environmentOf(service.key);
  const other = await service.sql.reserve();
  await other`begin`;
  await other`select from pay.payments where id = ${old.body.id} for update`;
  const refunding = service.call("POST", `${PAYMENTS}/${old.body.id}/refund`, {
    body: { amount: 1 },
  });
  // The statement with several changes gives up its lock wait after 50 ms. Then the refund waits in
  // a statement of its own.
  await untilStillWaiting(service, "pay.commit");
  const resetting = service.call("POST", `${SANDBOX}/reset`);
  await untilWaiting(service.sql, { calls: "pay.reset_sandbox" });
  let is_over = false;
  const making = service.make({ outcome: "success" }).finally(() => is_over = true);
  const [neighbour] = await Promise.all([
    service.pay({}, { key: service.other.text }),
    new Promise((resolve) => setTimeout(resolve, 100)),
  ]);
  await t.step("later requests of the sandbox wait, those of another one do not", () => {
    assert.equal(neighbour.status, 201);
    assert.equal(is_over, false);
  });
  await other`commit`;
  other.release();
  const [refunded, reset, made] = await Promise.all([refunding, resetting, making]);
  await t.step("earlier rows are gone, also those of the change in progress", async () => {
    assert.equal(refunded.status, 201, refunded.text);
    assert.equal(reset.status, 200, reset.text);
    assert.deepEqual(reset.body.deleted, {
      payments: 1,
      refunds: 1,
      transfers: 0,
      ledger_entries: 4,
      events: 5,
      webhook_deliveries: 0,
      idempotency_keys: 0,
      webhook_endpoints: 0,
      instruments: 0,
      checkouts: 0,
    });
    assert.equal((await service.call("GET", `${PAYMENTS}/${old.body.id}`)).status, 404);
    const path = `/api-v1-payments/v1/refunds/${refunded.body.id}`;
    assert.equal((await service.call("GET", path)).status, 404);
  });
  await t.step("retention deletes the earlier rows, and the later payment stays", async () => {
    await purgeAll(service.sql, 2);
    const left = await service.sql`
      select id from pay.environments where id = ${before}
      union all select id from pay.payments where environment_id = ${before}
      union all select id from pay.events where environment_id = ${before}`;
    assert.equal(left.length, 0);
    const path = `${PAYMENTS}/${made.body.id}`;
    assert.equal((await service.call("GET", path)).text, made.text);
  });
});

serviceCase("a refused POST /reset delays no other request", async (t, service) => {
  const reader = await service.issueKey(service.key.environment_id, { scopes: ["payments:read"] });
  const other = await service.sql.reserve();
  await other`begin`;
  // A change in progress holds this lock.
  await other`select pg_advisory_xact_lock_shared(
    hashtextextended('environment ' || ${await service.environmentOf(service.key)}, 0))`;
  const resets: [name: string, key: string, status: number][] = [
    ["for its scope", reader.text, 403],
    ["for its mode", service.live.text, 403],
  ];
  for (const [name, key, status] of resets) {
    await t.step(name, async () => {
      const refused = await service.call("POST", `${SANDBOX}/reset`, { key });
      assert.equal(refused.status, status, refused.text);
    });
  }
  await t.step("an admitted reset waits, and delays only its own environment", async () => {
    const reset = service.call("POST", `${SANDBOX}/reset`);
    await untilWaiting(service.sql, { calls: "pay.reset_sandbox" });
    const balance = service.call("GET", "/api-v1-payments/v1/balance");
    const neighbours = await Promise.all(
      Array.from(
        { length: 20 },
        () => service.call("GET", "/api-v1-payments/v1/balance", { key: service.other.text }),
      ),
    );
    assert.ok(neighbours.every(({ status }) => status === 200));
    await other`rollback`;
    const responses = [await reset, await balance];
    assert.deepEqual(responses.map(({ status }) => status), [200, 200], responses[0]!.text);
  });
  other.release();
});

serviceCase("POST /reset locks no delivery while it counts", async (_t, service) => {
  const endpoint = await service.post("/api-v1-payments/v1/webhook_endpoints", {
    url: "https://example.com/",
  });
  await service.sql`
    insert into pay.webhook_deliveries (environment_id, id, event_id, event_type, endpoint_id,
      subject_id, sequence, status, next_attempt_at, created_at)
    select t.environment_id, 'whd_' || repeat('0', 26), 'evt_' || repeat('0', 26),
      'payment.created', t.id, 'pay_' || repeat('0', 26), 1, 'pending', now() + interval '1 day', now()
    from pay.webhook_endpoints t where t.id = ${endpoint.id}`;
  const other = await service.sql.reserve();
  await other`begin`;
  await other`lock table pay.events in access exclusive mode`;
  const resetting = service.call("POST", `${SANDBOX}/reset`);
  // The reset counts the rows of this table and does nothing else with it.
  await untilWaiting(service.sql, { calls: "pay.reset_sandbox" });
  const free = await service.sql`
    select from pay.webhook_deliveries where endpoint_id = ${endpoint.id} for update skip locked`;
  await other`rollback`;
  other.release();
  const reset = await resetting;
  assert.equal(free.length, 1);
  assert.equal(reset.body.deleted.webhook_deliveries, 1, reset.text);
  assert.equal(await service.count("webhook_deliveries"), 0);
});

serviceCase("pay.purge() deletes 50 reset sandboxes a call", async (_t, service) => {
  for (let i = 0; i < 120; i++) {
    await service.pay();
    await service.post(`${SANDBOX}/reset`);
  }
  const left = () => service.count("environments where retired_at is not null");
  const counts = [await left()];
  for (let rows = -1; rows !== 0; counts.push(await left())) {
    rows = await service.deps.webhook_store.purge(Date.now());
  }
  assert.deepEqual(counts, [120, 70, 20, 0, 0]);
  assert.equal(await service.count("payments"), 0);
});

/** Waits until a call waits for a lock, and still waits after 100 ms. */
async function untilStillWaiting({ sql }: TestService, calls: string) {
  await untilWaiting(sql, { calls });
  await new Promise((resolve) => setTimeout(resolve, 100));
  await untilWaiting(sql, { calls });
}
