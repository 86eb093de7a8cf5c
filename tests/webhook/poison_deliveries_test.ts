/**
 * Poison deliveries: those with an expired lease, because their process died or froze. A dispatcher
 * sends one at a time, records a crash after three expired leases, and loses no lease when it
 * stops.
 */

import assert from "node:assert/strict";
import type { LeasedDelivery } from "../../shared/store/webhook_store.ts";
import type { TestService } from "../support/service/service.ts";
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

/** The number of leases that a killed dispatcher may have held. */
const LOST = 1_000;
/**
 * A loose limit, because other tests share the machine. A dispatcher that waits for its timer needs
 * 1 s for each.
 */
const DRAIN_LIMIT_MS = 50 * LOST;

/** Leases everything and lets the leases expire. Returns the time after that. */
async function loseLeases(service: TestService, at_ms: number): Promise<number> {
  await poll(service, at_ms);
  return at_ms + LEASE_MS;
}

/** The leases of a poll: the account of each delivery, and its flags. */
function shown(leased: readonly LeasedDelivery[]): string[] {
  return leased.map(({ account, poison, crashed }) =>
    [account, poison && "poison", crashed && "crashed"].filter(Boolean).join(" ")
  );
}

webhookCase(
  "poll_deliveries() leases one poison delivery, and accounts take turns",
  async (t, service) => {
    await service.setClock(AT);
    await insertEndpoint(service, 0);
    await insertEndpoint(service, 1, { environment_id: service.other.environment_id });
    for (let i = 0; i < 3; i++) {
      await service.make({ outcome: "pending" });
      await service.make({ outcome: "pending" }, { key: service.other.text });
    }
    const at = await loseLeases(service, AT);
    await t.step("a poll leases one poison delivery", async () => {
      assert.deepEqual(shown(await poll(service, at)), ["one poison"]);
    });
    await t.step(
      "a dispatcher with a poison delivery gets no other, but all normal deliveries",
      async () => {
        await service.make({ outcome: "pending" });
        assert.deepEqual(shown(await poll(service, at, { poison_ahead: null })), ["one"]);
      },
    );
    await t.step("the next poison delivery is of the account that is least ahead", async () => {
      assert.deepEqual(shown(await poll(service, at, { poison_ahead: { one: 1 } })), [
        "two poison",
      ]);
      assert.deepEqual(shown(await poll(service, at, { poison_ahead: { two: 1 } })), [
        "one poison",
      ]);
    });
    await t.step(
      "within an account the poison delivery with the fewest expired leases is first",
      async () => {
        const [first] = await poll(service, at, { poison_ahead: { two: 1 } });
        const lost = await loseLeases(service, at);
        for (let left = 2; left > 0; left--) {
          const [next] = await poll(service, lost, { poison_ahead: { one: 1 } });
          assert.deepEqual(shown([next!]), ["two poison"]);
        }
        const rows = await service.sql`
      select id, expired_leases from pay.webhook_deliveries where endpoint_id like 'whe_0%'`;
        assert.equal(rows.find(({ id }) => id === first!.id)!.expired_leases, 1);
      },
    );
  },
  NO_DISPATCHER,
);

webhookCase("poll_deliveries() marks a third expired lease as crashed", async (t, service) => {
  await service.setClock(AT);
  await insertEndpoint(service);
  await makeWaiting(service, 1);
  let at = AT;
  for (const [flags, attempt] of [["one", 1], ["one poison", 2], ["one poison", 3]] as const) {
    await t.step(`lease ${attempt}`, async () => {
      const leased = await poll(service, at);
      assert.deepEqual([shown(leased), leased[0]!.attempt], [[flags], attempt]);
    });
    at += LEASE_MS;
  }
  let crashed: LeasedDelivery | undefined;
  await t.step("the next lease is crashed and has the number of the lost attempt", async () => {
    [crashed] = await poll(service, at);
    assert.deepEqual([shown([crashed!]), crashed!.attempt], [["one poison crashed"], 3]);
  });
  await t.step("another dispatcher gets the same lease if that one dies as well", async () => {
    at += LEASE_MS;
    [crashed] = await poll(service, at);
    assert.deepEqual([shown([crashed!]), crashed!.attempt], [["one poison crashed"], 3]);
  });
  await t.step("a crashed delivery stays a poison delivery on its later attempts", async () => {
    await poll(service, at, { results: [resultOf(crashed!, false, at)], limit: 0 });
    at += 60_000;
    const [later] = await poll(service, at);
    assert.deepEqual([shown([later!]), later!.attempt], [["one poison"], 4]);
    await poll(service, at, { results: [resultOf(later!, false, at)], limit: 0 });
    at += 60_000;
    assert.deepEqual(shown(await poll(service, at)), ["one poison"]);
  });
  await t.step("and is crashed again after one expired lease", async () => {
    at += LEASE_MS;
    const [again] = await poll(service, at);
    assert.deepEqual([shown([again!]), again!.attempt], [["one poison crashed"], 5]);
  });
}, NO_DISPATCHER);

webhookCase(
  "poll_deliveries() sends a poison delivery normally once an attempt is recorded",
  async (
    _,
    service,
  ) => {
    await service.setClock(AT);
    await insertEndpoint(service);
    await makeWaiting(service, 1);
    const at = await loseLeases(service, AT);
    const [poison] = await poll(service, at);
    await poll(service, at, { results: [resultOf(poison!, false, at)], limit: 0 });
    assert.deepEqual(shown(await poll(service, at + 60_000)), ["one"]);
  },
  NO_DISPATCHER,
);

webhookCase(
  "poll_deliveries() keeps the order of a payment's poison deliveries",
  async (t, service) => {
    await service.setClock(AT);
    await insertEndpoint(service);
    await service.make({ outcome: "success" });
    let at = await loseLeases(service, AT);
    const sequenceOf = ({ body }: LeasedDelivery) => JSON.parse(body).sequence;
    const [first, ...more] = await poll(service, at);
    assert.deepEqual([sequenceOf(first!), more.length], [1, 0]);
    await t.step("the second waits for the first, even with fewer expired leases", async () => {
      assert.equal((await poll(service, at)).length, 0);
      at += LEASE_MS;
      const [again] = await poll(service, at);
      assert.deepEqual([sequenceOf(again!), again!.attempt], [1, 3]);
      await poll(service, at, { results: [resultOf(again!, true, at)], limit: 0 });
    });
    await t.step("and is leased at once after it", async () => {
      const [second] = await poll(service, at);
      assert.equal(sequenceOf(second!), 2);
    });
  },
  NO_DISPATCHER,
);

webhookCase("poll_deliveries() cancels a poison delivery of a disabled endpoint", async (
  _,
  service,
) => {
  await service.setClock(AT);
  await insertEndpoint(service);
  await makeWaiting(service, 2);
  const at = await loseLeases(service, AT);
  await poll(service, at);
  await service.sql`update pay.webhook_endpoints set status = 'disabled'`;
  await poll(service, at + LEASE_MS);
  const rows = await service.sql`select status from pay.webhook_deliveries`;
  assert.deepEqual(rows.map(({ status }) => status), ["cancelled", "cancelled"]);
}, NO_DISPATCHER);

webhookCase("a dispatcher records a crashed attempt and follows the schedule", async (
  t,
  service,
  hooks,
) => {
  const at_ms = AT + 3_600_000;
  await service.setClock(AT);
  await addEndpoint(service, hooks.url("/"), { events: ["payment.created"] });
  hooks.judge = () => 503;
  await service.make({ outcome: "pending" });
  await settle(service);
  hooks.arrivals.length = 0;
  await service.sql`update pay.webhook_deliveries
    set attempts = '{}', attempt_count = 3, expired_leases = 2, leased_until = ${new Date(at_ms)},
      next_attempt_at = ${new Date(AT)}`;
  await service.setClock(at_ms);
  await settle(service);
  await t.step("the delivery is not sent", () => assert.equal(hooks.arrivals.length, 0));
  await t.step("the attempt is recorded", async () => {
    const [delivery] = await deliveriesOf(service);
    assert.deepEqual([delivery.status, delivery.attempts, delivery.next_attempt_at], [
      "pending",
      [{
        number: 3,
        at: new Date(at_ms).toISOString(),
        response_status: null,
        duration_ms: 0,
        error: "crashed",
      }],
      new Date(at_ms + 600_000).toISOString(),
    ]);
    assert.equal(service.logs.filter(({ code }) => code === "crashed").length, 1);
  });
  await t.step("the next attempt is made when it is due", async () => {
    hooks.judge = () => 200;
    await service.setClock(at_ms + 600_000);
    await settle(service);
    assert.deepEqual(hooks.arrivals.map(({ headers }) => headers.get("Webhook-Attempt")), ["4"]);
    const [delivery] = await deliveriesOf(service);
    assert.deepEqual([delivery.status, delivery.attempts.length], ["delivered", 2]);
  });
});

webhookCase("a thousand poison deliveries are delivered within 50 s", async (_, service, hooks) => {
  await service.setClock(AT);
  await addEndpoint(service, hooks.url("/"), { events: ["payment.created"] });
  await service.sql`update pay.webhook_endpoints set status = 'disabled'`;
  await service.make({ outcome: "pending" });
  await service.sql`update pay.webhook_endpoints set status = 'enabled'`;
  const at = new Date(AT).toISOString();
  await service.sql`
    insert into pay.webhook_deliveries (environment_id, id, event_id, event_type, endpoint_id,
      subject_id, sequence, status, attempt_count, next_attempt_at, leased_until, created_at)
    select e.environment_id, left(t.id, 20) || 'd' || n, e.id, e.type, t.id, 'pay_' || n, 1,
      'pending', 1, ${at}, ${at}, ${at}
    from pay.events e, pay.webhook_endpoints t, generate_series(1, ${LOST}) n`;
  const started = performance.now();
  await settle(service);
  const took_ms = performance.now() - started;
  assert.equal(hooks.at("/").length, LOST);
  const rows = await service.sql`
    select from pay.webhook_deliveries where status <> 'delivered' or expired_leases > 0`;
  assert.equal(rows.length, 0);
  assert.ok(took_ms < DRAIN_LIMIT_MS, `${took_ms} ms`);
});

webhookCase(
  "slow poison deliveries of one account do not delay another's",
  async (_, service, hooks) => {
    const POISON = 20;
    const SLOW_MS = 1_000;
    const options = { key: service.other.text };
    await addEndpoint(service, hooks.url("/quick"), { events: ["payment.created"] });
    await addEndpoint(service, hooks.url("/slow"), { events: ["payment.created"] }, options);
    hooks.judge = () => 503;
    for (let i = 0; i < POISON; i++) {
      await service.make({ outcome: "pending" });
      await service.make({ outcome: "pending" }, options);
    }
    await settle(service);
    hooks.arrivals.length = 0;
    hooks.judge = async ({ path }) => {
      if (path === "/slow") await new Promise((resolve) => setTimeout(resolve, SLOW_MS));
      return 200;
    };
    await service
      .sql`update pay.webhook_deliveries set expired_leases = 1, next_attempt_at = created_at`;
    const settled = settle(service);
    await until("the quick ones have arrived", () => hooks.at("/quick").length === POISON);
    const slow = hooks.at("/slow").length;
    await service.deps.webhooks!.dispatcher.stop(Promise.resolve());
    await settled;
    // If accounts took turns by number, as many slow poison deliveries would have arrived.
    assert.ok(slow < POISON / 2, `${slow} slow ones arrived meanwhile`);
  },
);
