/**
 * The deliveries that one poll leases and the results that it records: leases and their ends, whole
 * payments within limits, and polls that stay fast behind thousands of waiting events.
 */

import assert from "node:assert/strict";
import { openSession } from "../support/database/database.ts";
import type { AttemptResult } from "../../shared/store/webhook_store.ts";
import type { TestService } from "../support/service/service.ts";
import { deliveriesOf } from "../support/webhook/recording_receiver.ts";
import {
  AT,
  insertEndpoint,
  LEASE_MS,
  makeWaiting,
  poll,
  pollCase,
  resultOf,
} from "../support/webhook/dispatcher_polls.ts";

pollCase("leases a delivery again after its lease", async (t, service) => {
  await makeWaiting(service, 1);
  const [first] = await poll(service, AT);
  assert.equal(first!.attempt, 1);
  await t.step("it is not leased a millisecond before the lease ends", async () => {
    assert.equal((await poll(service, AT + LEASE_MS - 1)).length, 0);
  });
  const [second] = await poll(service, AT + LEASE_MS);
  await t.step("then it is leased as the next attempt", () => {
    assert.deepEqual([second!.id, second!.attempt], [first!.id, 2]);
  });
  await t.step("the late result of the first attempt is ignored", async () => {
    const before = await service.sql`select t::text from pay.webhook_deliveries t`;
    for (const delivered of [true, false]) {
      await poll(service, AT + LEASE_MS, { results: [resultOf(first!, delivered, AT)], limit: 0 });
    }
    assert.deepEqual(await service.sql`select t::text from pay.webhook_deliveries t`, before);
  });
  await t.step("the result of the second attempt counts once", async () => {
    const results = [resultOf(second!, true, AT + LEASE_MS)];
    await poll(service, AT + LEASE_MS + 1, { results });
    await poll(service, AT + LEASE_MS + 1, { results });
    await poll(service, AT + LEASE_MS + 2, { results: [resultOf(first!, false, AT)] });
    const [delivery] = await deliveriesOf(service);
    assert.deepEqual([delivery.status, delivery.attempts.length, delivery.attempts[0].number], [
      "delivered",
      1,
      2,
    ]);
  });
});

pollCase("ends no later lease by a release that comes again", async (_, service) => {
  await makeWaiting(service, 1);
  const [first] = await poll(service, AT);
  const released: AttemptResult = { ...resultOf(first!, false, AT), outcome: "released" };
  await poll(service, AT, { results: [released], limit: 0 });
  const [second] = await poll(service, AT + 1);
  assert.deepEqual([second!.id, second!.attempt], [first!.id, 1]);
  // The first dispatcher got no response, for example from a database that broke off.
  assert.equal((await poll(service, AT + 2, { results: [released] })).length, 0);
  await poll(service, AT + 2, { results: [resultOf(second!, true, AT + 2)], limit: 0 });
  const [delivery] = await deliveriesOf(service);
  assert.deepEqual([delivery.status, delivery.attempts.length], ["delivered", 1]);
});

pollCase("gives a full lease to a dispatcher whose clock is behind", async (_, service) => {
  const now = AT + 2 * LEASE_MS;
  await makeWaiting(service, 1);
  const behind = { at_ms: AT, leased_until_ms: AT + LEASE_MS };
  const [leased] = await poll(service, now, behind);
  assert.equal((await poll(service, now + LEASE_MS - 1)).length, 0);
  await poll(service, now + LEASE_MS - 1, { ...behind, results: [resultOf(leased!, true, AT)] });
  const [delivery] = await deliveriesOf(service);
  assert.deepEqual([delivery.status, delivery.attempts.length], ["delivered", 1]);
});

/** The number of deliveries that the poll has postponed. */
const putOff = ({ count }: TestService) =>
  count(`webhook_deliveries where next_attempt_at > '${new Date(AT).toISOString()}'`);

pollCase("leases all due events of a payment", async (_, service) => {
  for (let i = 0; i < 12; i++) await service.make({ outcome: "refunded" });
  // The poll leases all five events of four payments, not the first events of sixteen. The next
  // lease then meets no event that waits for one of these.
  for (
    const [bounds, payments] of [
      [{ per_endpoint: 16 }, 4],
      [{ per_endpoint: 13 }, 3],
      [{ per_endpoint: 1 }, 1],
      [{ per_environment: 3 }, 1],
      [{ limit: 6 }, 2],
    ] as const
  ) {
    const leased = await poll(service, AT, bounds);
    assert.equal(leased.length, 5 * payments, JSON.stringify(bounds));
    assert.equal(new Set(leased.map(({ subject_id }) => subject_id)).size, payments);
  }
  assert.equal(await putOff(service), 0);
});

pollCase("prefers the endpoint with fewer leases", async (_, service) => {
  await makeWaiting(service, 4);
  const endpoints = await service.sql`select id from pay.webhook_endpoints order by id`;
  const [zero, one, two] = endpoints.map(({ id }) => id);
  const next = async (endpoints: Record<string, number>) => {
    const capacity = { endpoints, environments: {}, accounts: {} };
    const leased = await poll(service, AT, { capacity, per_environment: 1 });
    return leased.map(({ endpoint_id }) => endpoint_id);
  };
  assert.deepEqual(await next({ [zero]: 12, [one]: 14 }), [two]);
  assert.deepEqual(await next({ [zero]: 12, [one]: 14, [two]: 13 }), [one]);
  // A fast endpoint has more capacity. That gives it no priority over one without leases.
  assert.deepEqual(await next({ [zero]: 512, [one]: 512 }), [two]);
}, 3);

pollCase("postpones an event whose predecessor is locked", async (_, service) => {
  await service.make({ outcome: "success" });
  await service.make({ outcome: "success" });
  const [first] = await service.sql`
    select id from pay.webhook_deliveries where sequence = 1
    order by next_attempt_at, subject_id limit 1`;
  await using other = await openSession(service.sql);
  await other`begin`;
  await other`select from pay.webhook_deliveries where id = ${first!.id} for update`;
  // The second event of that payment is postponed, and the next payment is leased.
  assert.equal((await poll(service, AT, { per_endpoint: 1 })).length, 2);
  assert.equal(await putOff(service), 1);
  await other`commit`;
});

pollCase("skips an event that is due before its predecessor", async (t, service) => {
  await service.make({ outcome: "success" });
  // As after a failed attempt of the first event, while the second has been due for longer.
  await service.sql`
    update pay.webhook_deliveries set next_attempt_at = next_attempt_at - interval '1 s'
    where sequence = 2 and endpoint_id like 'whe_0%'`;
  const next = async () => {
    const leased = await poll(service, AT, { per_environment: 2 });
    return leased.map(({ endpoint_id, body }) => [endpoint_id[4], JSON.parse(body).sequence]);
  };
  await t.step("the other endpoint's events take the free capacity", async () => {
    assert.deepEqual(await next(), [["1", 1], ["1", 2]]);
    assert.equal(await putOff(service), 1);
  });
  await t.step("the predecessor is leased next", async () => {
    assert.deepEqual(await next(), [["0", 1]]);
  });
}, 2);

const EVENTS = 4_000;
const ENDPOINTS = 15;
/** A poll that reads all of them reaches the statement timeout of 5 s. */
const LONGEST_TURN_MS = 1_500;
/** The limits of a dispatcher without leases (delivery_queue.ts). */
const REQUESTED = { limit: 1024, per_endpoint: 32, per_environment: 32, per_account: 64 };

pollCase("is fast with thousands of waiting events", async (t, service) => {
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
  const at = new Date(AT).toISOString();
  const countDue = () =>
    service.count(`webhook_deliveries where next_attempt_at <= '${at}' and leased_until is null`);
  const due = await countDue();
  assert.equal(due, ENDPOINTS * (EVENTS - 1));
  await t.step("a poll that leases nothing goes on where the last one stopped", async () => {
    for (let left = due, i = 0; i < 3; i++) {
      const began = performance.now();
      assert.equal((await poll(service, AT, REQUESTED)).length, 0);
      assert.ok(performance.now() - began < LONGEST_TURN_MS);
      const now = await countDue();
      assert.ok(now < left, `${now} of ${left} are still to be looked at`);
      left = now;
    }
  });
  await t.step("events far behind the first are postponed for longer", async () => {
    const minute = new Date(AT + 60_000).toISOString();
    const far = () => service.count(`webhook_deliveries where next_attempt_at >= '${minute}'`);
    for (let i = 0; i < 20 && await far() === 0; i++) await poll(service, AT, REQUESTED);
    assert.ok(await far() > 0);
  });
  await t.step("the next poll leases another tenant's delivery", async () => {
    await insertEndpoint(service, ENDPOINTS, { environment_id: service.other.environment_id });
    await service.make({ outcome: "pending" }, { key: service.other.text });
    assert.deepEqual((await poll(service, AT, REQUESTED)).map(({ account }) => account), ["two"]);
  });
}, ENDPOINTS);
