/**
 * Poison deliveries: those with an expired lease, because their process died or froze. A dispatcher
 * sends one at a time, and records a crash after three expired leases.
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
  poll,
  pollCase,
  resultOf,
} from "../support/webhook/dispatcher_polls.ts";
import { webhookCase } from "../support/webhook/webhook_case.ts";
import { pause, until } from "../support/common/until.ts";

const RETRY_MS = 60_000;

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

pollCase("leases one poison delivery, and accounts take turns", async (t, service) => {
  await insertEndpoint(service, 1, { environment_id: service.other.environment_id });
  for (let i = 0; i < 3; i++) {
    await service.make({ outcome: "pending" });
    await service.make({ outcome: "pending" }, { key: service.other.text });
  }
  const at = await loseLeases(service, AT);
  await t.step("a poll leases one poison delivery", async () => {
    assert.deepEqual(shown(await poll(service, at)), ["one poison"]);
  });
  await t.step("a dispatcher that has one gets no other, but all normal deliveries", async () => {
    await service.make({ outcome: "pending" });
    assert.deepEqual(shown(await poll(service, at, { poison_ahead: null })), ["one"]);
  });
  await t.step("the next poison delivery is of the account that is least ahead", async () => {
    for (const [ahead, expected] of [["one", "two poison"], ["two", "one poison"]] as const) {
      const leased = await poll(service, at, { poison_ahead: { [ahead]: 1 } });
      assert.deepEqual(shown(leased), [expected]);
    }
  });
  await t.step("within an account the one with the fewest expired leases is first", async () => {
    const [first] = await poll(service, at, { poison_ahead: { two: 1 } });
    const lost = await loseLeases(service, at);
    for (let left = 2; left > 0; left--) {
      const leased = await poll(service, lost, { poison_ahead: { one: 1 } });
      assert.deepEqual(shown(leased), ["two poison"]);
    }
    const [row] = await service.sql`
      select expired_leases from pay.webhook_deliveries where id = ${first!.id}`;
    assert.equal(row!.expired_leases, 1);
  });
});

/** The leases of one delivery: what has happened to the lease before, the flags and the number. */
const LEASES: [was: "made" | "lost" | "failed", flags: string, attempt: number, name?: string][] = [
  ["made", "one", 1],
  ["lost", "one poison", 2],
  ["lost", "one poison", 3],
  ["lost", "one poison crashed", 3, "has the number of the lost attempt"],
  ["lost", "one poison crashed", 3, "is repeated for another dispatcher"],
  ["failed", "one poison", 4, "a crashed delivery stays a poison delivery"],
  ["failed", "one poison", 5],
  ["lost", "one poison crashed", 5, "and is crashed again after one expired lease"],
];

pollCase("marks a third expired lease as crashed", async (t, service) => {
  await makeWaiting(service, 1);
  let at = AT;
  let last: LeasedDelivery;
  for (const [before, flags, attempt, name = ""] of LEASES) {
    await t.step(`${before}: ${flags}, attempt ${attempt}, ${name}`, async () => {
      if (before === "lost") at += LEASE_MS;
      if (before === "failed") {
        await poll(service, at, { results: [resultOf(last, false, at)], limit: 0 });
        at += RETRY_MS;
      }
      const leased = await poll(service, at);
      last = leased[0]!;
      assert.deepEqual([shown(leased), last.attempt], [[flags], attempt]);
    });
  }
});

pollCase("sends a poison delivery normally once an attempt is recorded", async (_, service) => {
  await makeWaiting(service, 1);
  const at = await loseLeases(service, AT);
  const [poison] = await poll(service, at);
  await poll(service, at, { results: [resultOf(poison!, false, at)], limit: 0 });
  assert.deepEqual(shown(await poll(service, at + RETRY_MS)), ["one"]);
});

pollCase("keeps the order of a payment's poison deliveries", async (t, service) => {
  await service.make({ outcome: "success" });
  let at = await loseLeases(service, AT);
  const leasedAt = async (at_ms: number) =>
    (await poll(service, at_ms)).map(({ body, attempt }) => [JSON.parse(body).sequence, attempt]);
  assert.deepEqual(await leasedAt(at), [[1, 2]]);
  await t.step("the second waits for the first, even with fewer expired leases", async () => {
    assert.deepEqual(await leasedAt(at), []);
    at += LEASE_MS;
    const [again] = await poll(service, at);
    assert.deepEqual([JSON.parse(again!.body).sequence, again!.attempt], [1, 3]);
    await poll(service, at, { results: [resultOf(again!, true, at)], limit: 0 });
  });
  await t.step("and is leased at once after it", async () => {
    assert.deepEqual((await leasedAt(at)).map(([sequence]) => sequence), [2]);
  });
});

webhookCase("a crashed attempt is recorded, and tried again", async (_, service, hooks) => {
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
  const settleAt = async (at_ms: number) => {
    await service.setClock(at_ms);
    await settle(service);
    return (await deliveriesOf(service))[0];
  };
  const crashed = await settleAt(at_ms);
  assert.equal(hooks.arrivals.length, 0, "the delivery is not sent");
  const at = new Date(at_ms).toISOString();
  const attempt = { number: 3, at, response_status: null, duration_ms: 0, error: "crashed" };
  assert.deepEqual(
    [crashed.status, crashed.attempts, crashed.next_attempt_at],
    ["pending", [attempt], new Date(at_ms + 600_000).toISOString()],
  );
  assert.equal(service.logs.filter(({ code }) => code === "crashed").length, 1);
  hooks.judge = () => 200;
  const delivery = await settleAt(at_ms + 600_000);
  assert.deepEqual(hooks.arrivals.map(({ headers }) => headers.get("Webhook-Attempt")), ["4"]);
  assert.deepEqual([delivery.status, delivery.attempts.length], ["delivered", 2]);
});

webhookCase("poison goes out singly, and slow ones delay no other", async (_, service, hooks) => {
  const POISON = 20;
  const SLOW_MS = 1_000;
  const QUICK_MS = 50;
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
  let [under_way, most] = [0, 0];
  hooks.judge = async ({ path }) => {
    most = Math.max(most, ++under_way);
    // A commit wakes the dispatcher meanwhile.
    void settle(service);
    await pause(path === "/slow" ? SLOW_MS : QUICK_MS);
    under_way--;
    return 200;
  };
  await service
    .sql`update pay.webhook_deliveries set expired_leases = 1, next_attempt_at = created_at`;
  const settled = settle(service);
  // A dispatcher that waits for its timer behind each needs 20 s.
  await until("the quick ones have arrived", () => hooks.at("/quick").length === POISON, 10_000);
  const slow = hooks.at("/slow").length;
  await service.deps.webhooks!.dispatcher.stop(Promise.resolve());
  await settled;
  // Each may end the process.
  assert.equal(most, 1);
  // If accounts took turns by number, as many slow poison deliveries would have arrived.
  assert.ok(slow < POISON / 2, `${slow} slow ones arrived meanwhile`);
});
