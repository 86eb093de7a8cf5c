/**
 * A payment has thousands of events while the first is still being sent. Its waiting deliveries
 * make no poll of the dispatcher slow, and the dispatcher leases another tenant's deliveries
 * meanwhile.
 */

import assert from "node:assert/strict";
import {
  AT,
  insertEndpoint,
  LEASE_MS,
  makeWaiting,
  NO_DISPATCHER,
  poll,
} from "../support/webhook/dispatcher_polls.ts";
import { webhookCase } from "../support/webhook/webhook_case.ts";

const EVENTS = 4_000;
const ENDPOINTS = 15;
/** A poll that reads all of them reaches the statement timeout of 5 s. */
const LONGEST_TURN_MS = 1_500;
/** The limits of a dispatcher without leases (delivery_queue.ts). */
const REQUESTED = { limit: 1024, per_endpoint: 32, per_environment: 32, per_account: 64 };

webhookCase("poll_deliveries() is fast with thousands of waiting events", async (t, service) => {
  await service.setClock(AT);
  for (let slot = 0; slot < ENDPOINTS; slot++) await insertEndpoint(service, slot);
  await makeWaiting(service, 1);
  await service.sql`
    insert into pay.webhook_deliveries (environment_id, id, event_id, event_type, endpoint_id,
      subject_id, sequence, status, next_attempt_at, created_at)
    select e.environment_id, 'whd_' || t.slot || 'd' || n, e.id, e.type, t.id, e.subject_id, n,
      'pending', e.created_at, e.created_at
    from pay.events e, pay.webhook_endpoints t, generate_series(2, ${EVENTS}) n`;
  const later = new Date(AT + LEASE_MS);
  await service.sql`
    update pay.webhook_deliveries set leased_until = ${later}, attempt_count = 1 where sequence = 1`;
  const countDue = async (at_ms: number) => {
    const [row] = await service.sql`
      select count(*)::int as due from pay.webhook_deliveries
      where next_attempt_at <= ${new Date(at_ms)} and leased_until is null`;
    return row!.due;
  };
  const due = await countDue(AT);
  assert.equal(due, ENDPOINTS * (EVENTS - 1));
  await t.step(
    "a poll that leases nothing is fast, and continues where the last one stopped",
    async () => {
      for (let left = due, i = 0; i < 3; i++) {
        const began = performance.now();
        assert.equal((await poll(service, AT, REQUESTED)).length, 0);
        const took_ms = performance.now() - began;
        assert.ok(took_ms < LONGEST_TURN_MS, `${took_ms} ms`);
        const now = await countDue(AT);
        assert.ok(now < left, `${now} of ${left} are still to be looked at`);
        left = now;
      }
    },
  );
  await t.step("events far behind the first are postponed for longer", async () => {
    const far = async () =>
      await service.sql`
        select from pay.webhook_deliveries where next_attempt_at >= ${new Date(AT + 60_000)}`;
    for (let i = 0; i < 20 && (await far()).length === 0; i++) await poll(service, AT, REQUESTED);
    assert.ok((await far()).length > 0);
  });
  await t.step("the next poll leases another tenant's delivery", async () => {
    await insertEndpoint(service, ENDPOINTS, { environment_id: service.other.environment_id });
    await service.make({ outcome: "pending" }, { key: service.other.text });
    assert.deepEqual((await poll(service, AT, REQUESTED)).map(({ account }) => account), ["two"]);
  });
}, NO_DISPATCHER);
