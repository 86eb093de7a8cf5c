/**
 * Leases and their leases: the deliveries that one poll leases together, two dispatchers at the
 * same time, the recovery from a dead dispatcher, and a dispatcher without its database.
 */

import assert from "node:assert/strict";
import postgres from "postgres";
import { createDependencies } from "../../shared/functions/dependencies.ts";
import type { AttemptResult, LeasedDelivery } from "../../shared/store/webhook_store.ts";
import { BASE_URL, MASTER_SECRET, type TestService } from "../support/service/service.ts";
import { addEndpoint, deliveriesOf, settle } from "../support/webhook/recording_receiver.ts";
import {
  AT,
  insertEndpoint,
  LEASE_MS,
  makeWaiting,
  NO_DISPATCHER,
  poll,
  resultOf,
} from "../support/webhook/dispatcher_polls.ts";
import { webhookCase } from "../support/webhook/webhook_case.ts";
import { until } from "../support/common/until.ts";

webhookCase("poll_deliveries() leases a delivery again after its lease", async (t, service) => {
  await service.setClock(AT);
  await insertEndpoint(service);
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
      await poll(service, AT + LEASE_MS, {
        results: [resultOf(first!, delivered, AT)],
        limit: 0,
      });
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
}, NO_DISPATCHER);

webhookCase("poll_deliveries() ends no later lease by a release that comes again", async (
  _,
  service,
) => {
  await service.setClock(AT);
  await insertEndpoint(service);
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
}, NO_DISPATCHER);

webhookCase("poll_deliveries() gives a full lease to a dispatcher whose clock is behind", async (
  _,
  service,
) => {
  const now = AT + 2 * LEASE_MS;
  await service.setClock(AT);
  await insertEndpoint(service);
  await makeWaiting(service, 1);
  const behind = { at_ms: AT, leased_until_ms: AT + LEASE_MS };
  const [leased] = await poll(service, now, behind);
  assert.equal((await poll(service, now + LEASE_MS - 1)).length, 0);
  await poll(service, now + LEASE_MS - 1, { ...behind, results: [resultOf(leased!, true, AT)] });
  const [delivery] = await deliveriesOf(service);
  assert.deepEqual([delivery.status, delivery.attempts.length], ["delivered", 1]);
}, NO_DISPATCHER);

/** The number of deliveries that the poll has postponed. */
async function putOff({ sql }: TestService): Promise<number> {
  const rows = await sql`
    select from pay.webhook_deliveries where next_attempt_at > ${new Date(AT)}`;
  return rows.length;
}

webhookCase("poll_deliveries() leases all due events of a payment", async (_, service) => {
  await service.setClock(AT);
  await insertEndpoint(service);
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
}, NO_DISPATCHER);

webhookCase("poll_deliveries() keeps whole payments due above a limit", async (_, service) => {
  await service.setClock(AT);
  for (const slot of [0, 1]) await insertEndpoint(service, slot);
  for (let i = 0; i < 4; i++) await service.make({ outcome: "success" });
  for (let left = 16; left > 0; left -= 4) {
    const leased = await poll(service, AT, { per_environment: 3 });
    const chains = new Set(leased.map(({ endpoint_id, subject_id }) => endpoint_id + subject_id));
    assert.deepEqual([leased.length, chains.size], [4, 2]);
    assert.equal(await putOff(service), 0);
  }
  assert.equal((await poll(service, AT)).length, 0);
}, NO_DISPATCHER);

webhookCase("poll_deliveries() prefers the endpoint with fewer leases", async (_, service) => {
  await service.setClock(AT);
  for (const slot of [0, 1, 2]) await insertEndpoint(service, slot);
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
}, NO_DISPATCHER);

webhookCase("poll_deliveries() postpones an event whose predecessor is locked", async (
  _,
  service,
) => {
  await service.setClock(AT);
  await insertEndpoint(service);
  await service.make({ outcome: "success" });
  await service.make({ outcome: "success" });
  const [first] = await service.sql`
    select id from pay.webhook_deliveries where sequence = 1
    order by next_attempt_at, subject_id limit 1`;
  const other = await service.sql.reserve();
  try {
    await other`begin`;
    await other`select from pay.webhook_deliveries where id = ${first!.id} for update`;
    // The second event of that payment is postponed, and the next payment is leased.
    assert.equal((await poll(service, AT, { per_endpoint: 1 })).length, 2);
    assert.equal(await putOff(service), 1);
    await other`commit`;
  } finally {
    other.release();
  }
}, NO_DISPATCHER);

webhookCase("poll_deliveries() skips an event that is due before its predecessor", async (
  t,
  service,
) => {
  await service.setClock(AT);
  for (const slot of [0, 1]) await insertEndpoint(service, slot);
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
}, NO_DISPATCHER);

webhookCase(
  "poll_deliveries() by concurrent dispatchers leases each delivery once",
  async (_, service) => {
    await service.setClock(AT);
    await insertEndpoint(service);
    await makeWaiting(service, 120);
    const others = Array.from(
      { length: 8 },
      () =>
        createDependencies({ database_url: service.database.functions_url, base_url: BASE_URL }),
    );
    try {
      const leased: LeasedDelivery[] = [];
      for (let round = 0; round < 12 && leased.length < 120; round++) {
        const polls = await Promise.all(others.map((deps) => poll({ ...service, deps }, AT)));
        leased.push(...polls.flat());
      }
      assert.equal(leased.length, 120);
      assert.equal(new Set(leased.map(({ id }) => id)).size, 120);
    } finally {
      await Promise.all(others.map((deps) => deps.close()));
    }
  },
  NO_DISPATCHER,
);

webhookCase("three dispatchers deliver each event once and in order", async (
  _,
  service,
  hooks,
) => {
  await addEndpoint(service, hooks.url("/"));
  const others = Array.from({ length: 2 }, () =>
    createDependencies({
      database_url: service.database.functions_url,
      base_url: BASE_URL,
      webhook_master_secret: MASTER_SECRET,
      allow_private_webhooks: true,
    }));
  try {
    await Promise.all(Array.from({ length: 80 }, async () => {
      await service.make({ outcome: "refunded" });
      await Promise.all(others.map((deps) => deps.webhooks!.dispatcher.notify()));
    }));
    await until("all have arrived", async () => {
      await Promise.all(
        [service.deps, ...others].map((deps) => deps.webhooks!.dispatcher.notify()),
      );
      return hooks.arrivals.length >= 400;
    }, 30_000);
    await settle(service);
    assert.equal(new Set(hooks.arrivals.map(({ event }) => event.id)).size, 400);
    assert.equal(hooks.arrivals.length, 400);
    const last = new Map<string, number>();
    for (const { event } of hooks.arrivals) {
      const subject = event.data.object.payment_id ?? event.data.object.id;
      assert.equal(event.sequence, (last.get(subject) ?? 0) + 1);
      last.set(subject, event.sequence);
    }
  } finally {
    await Promise.all(others.map((deps) => deps.close()));
  }
});

webhookCase(
  "a dispatcher keeps results while the database is unavailable, without a busy loop",
  async (
    t,
    service,
    hooks,
  ) => {
    await addEndpoint(service, hooks.url("/"));
    const responses: (() => void)[] = [];
    hooks.judge = () => new Promise((resolve) => responses.push(() => resolve(200)));
    await service.make({ outcome: "pending" });
    await service.make({ outcome: "pending" });
    await until("both are in progress", () => responses.length === 2);
    const { pathname } = new URL(service.database.url);
    const name = pathname.slice(1);
    const server = new URL(service.database.url);
    server.pathname = "/postgres";
    const admin = postgres(server.href, { max: 1, onnotice: () => {} });
    try {
      await admin`alter database ${admin(name)} allow_connections false`;
      await admin`select pg_terminate_backend(pid) from pg_stat_activity where datname = ${name}`;
      const failed = () => service.logs.filter(({ route }) => route === "dispatcher").length;
      await t.step("a failed poll is repeated when an attempt ends", async () => {
        responses.shift()!();
        await until("a poll has failed", () => failed() > 0);
        for (let i = 0; i < 50; i++) await new Promise((resolve) => setTimeout(resolve));
        assert.ok(failed() <= 3, `${failed()} polls have failed`);
        responses.shift()!();
        await settle(service);
        assert.ok(failed() <= 6, `${failed()} polls have failed`);
      });
      await admin`alter database ${admin(name)} allow_connections true`;
      await t.step("after its return the results are recorded, and nothing is resent", async () => {
        await until("both are recorded", async () => {
          await settle(service);
          const rows = await service.sql`select status from pay.webhook_deliveries`;
          return rows.every(({ status }) => status === "delivered");
        });
        assert.equal(hooks.arrivals.length, 2);
      });
    } finally {
      await admin`alter database ${admin(name)} allow_connections true`;
      await admin.end();
    }
  },
);
