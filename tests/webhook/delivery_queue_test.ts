/**
 * DeliveryQueue: the numbers of running attempts and of leased deliveries, by endpoint, environment
 * and account, and in all. The test of FairQueue has the rules.
 */

import assert from "node:assert/strict";
import { setImmediate } from "node:timers";
import { chainsOf, DeliveryQueue } from "../../shared/domain/webhooks/delivery_queue.ts";
import type { Slot } from "../../shared/jobs/fair_queue.ts";
import type { LeasedDelivery } from "../../shared/store/webhook_store.ts";

let made = 0;

/** A leased delivery, by default of a subject of its own. */
function delivery(fields: Partial<LeasedDelivery> = {}): LeasedDelivery {
  const id = `whd_${++made}`;
  return {
    environment_id: "env_now",
    public_id: "env_1",
    account: "one",
    id,
    endpoint_id: "whe_1",
    event_id: `evt_${made}`,
    subject_id: `pay_${made}`,
    attempt: 1,
    leased_until: "",
    url: "http://127.0.0.1:1/",
    secrets: "[]",
    livemode: false,
    failing_since: null,
    poison: false,
    settings: null,
    crashed: false,
    traceparent: null,
    body: "{}",
    fault: null,
    ...fields,
  };
}

function many(count: number, fields: Partial<LeasedDelivery> = {}): LeasedDelivery[] {
  return Array.from({ length: count }, () => delivery(fields));
}

/** A queue with a clock that the test sets, its running attempts and its cancelled chains. */
class Opened {
  now_ms = 1_000;
  readonly queue = new DeliveryQueue(() => this.now_ms);
  readonly running: { slot: Slot; began_ms: number }[] = [];
  cancelled = 0;

  /** Adds leased deliveries. Returns how many of them begin. */
  async add(leased: readonly LeasedDelivery[]): Promise<number> {
    const before = this.running.length;
    for (const chain of chainsOf(leased, 0)) {
      this.queue.take(chain).then((slot) => {
        if (slot === null) this.cancelled++;
        else this.running.push({ slot, began_ms: this.now_ms });
      });
    }
    await settled();
    return this.running.length - before;
  }

  /** Ends attempts, each `took_ms` after its beginning, until `left` deliveries are leased. */
  async work(took_ms: number, { delivered = true, left = 0 } = {}): Promise<void> {
    while (this.queue.leased > left) {
      const { slot, began_ms } = this.running.shift()!;
      this.now_ms = Math.max(this.now_ms, began_ms + took_ms);
      slot.endPart(delivered);
      slot.leave();
      await settled();
    }
  }

  /** Makes `count` attempts one after another. */
  async train(count: number, took_ms: number, fields: Partial<LeasedDelivery> = {}) {
    for (let i = 0; i < count; i++) {
      await this.add(many(1, fields));
      const { slot } = this.running.pop()!;
      this.now_ms += took_ms;
      slot.endPart(true);
      slot.leave();
    }
  }

  /** Adds deliveries at 8 endpoints. Returns how many of them begin. */
  async flood(name: string, fields: Partial<LeasedDelivery> = {}): Promise<number> {
    let begun = 0;
    for (let i = 0; i < 8; i++) {
      begun += await this.add(many(20, { ...fields, endpoint_id: `whe_${name}_${i}` }));
    }
    return begun;
  }

  /** Floods four environments of an account. */
  async floodAccount(account: string): Promise<number> {
    let begun = 0;
    for (let i = 0; i < 4; i++) {
      begun += await this.flood(`${account}_${i}`, { account, public_id: `env_${account}_${i}` });
    }
    return begun;
  }
}

/** Resolves after all work that waits only for promises. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

Deno.test("DeliveryQueue: 4 attempts at a new endpoint, 16 of an environment, 32 of an account", async () => {
  const opened = new Opened();
  assert.equal(await opened.add(many(40)), 4);
  assert.equal(4 + await opened.flood("new"), 16);
  assert.equal(16 + await opened.flood("other", { public_id: "env_2" }), 32);
  assert.equal(await opened.flood("third", { public_id: "env_3" }), 0);
});

Deno.test("DeliveryQueue: 16 attempts at a fast endpoint, 2 at a failing one", async () => {
  const opened = new Opened();
  await opened.add(many(60));
  await opened.work(1, { left: 20 });
  assert.equal(opened.running.length, 16);
  assert.equal(await opened.add(many(20, { endpoint_id: "f", failing_since: new Date() })), 2);
});

Deno.test("DeliveryQueue: 64 attempts of a fast environment, 32 of a slow one after a reset", async () => {
  const fast = new Opened();
  await fast.train(100, 1);
  // A reset changes the id of the environment, and not its public id.
  const flood = async (opened: Opened) =>
    await opened.flood("a") + await opened.flood("b", { environment_id: "env_after" }) +
    await opened.flood("c", { environment_id: "env_later" });
  assert.equal(await flood(fast), 64);
  const slow = new Opened();
  await slow.train(100, 1);
  await slow.train(20, 13_000, { endpoint_id: "whe_slow" });
  assert.equal(await flood(slow), 32);
});

Deno.test("DeliveryQueue: 96 attempts of an account, and 64 of 256 for accounts with few", async () => {
  const opened = new Opened();
  for (const account of ["a", "b", "c"]) {
    for (let i = 0; i < 4; i++) {
      await opened.train(100, 1, { account, public_id: `env_${account}_${i}` });
    }
  }
  const begun = [];
  for (const account of ["a", "b", "c", "d"]) begun.push(await opened.floodAccount(account));
  assert.deepEqual(begun, [96, 96, 4, 4]);
});

Deno.test("DeliveryQueue.take() lets a poison delivery begin above the limits", async () => {
  const opened = new Opened();
  await opened.add(many(40));
  assert.equal(await opened.add([delivery({ poison: true })]), 1);
});

Deno.test("chainsOf() chains deliveries of one endpoint and subject, but no poison ones", () => {
  const [one, two, three] = many(3, { subject_id: "pay_a" });
  const poison = delivery({ subject_id: "pay_a", poison: true });
  const elsewhere = delivery({ subject_id: "pay_a", endpoint_id: "whe_2" });
  const other = delivery();
  assert.deepEqual(
    chainsOf([one!, two!, poison, three!, elsewhere, other], 7),
    [[one, two], [poison], [three], [elsewhere], [other]].map((deliveries) => ({
      deliveries,
      leased_at_ms: 7,
    })),
  );
});

/** [name, duration of each attempt, delivered, capacity of endpoint, environment and account] */
const CAPACITIES: [string, number, boolean, [number, number, number]][] = [
  ["that responds at once: 512 in all", 1, true, [512, 128 + 480, 192 + 480]],
  ["that takes 20 ms: its attempts of 100 ms", 20, true, [80, 128 + 48, 192 + 48]],
  ["that takes 10 s: two for each slot", 10_000, true, [4, 32, 64]],
  ["that fails: two", 1, false, [2, 32, 64]],
];

for (const [name, took_ms, delivered, expected] of CAPACITIES) {
  Deno.test(`DeliveryQueue.capacity() of an endpoint ${name}`, async () => {
    const opened = new Opened();
    await opened.add(many(202));
    await opened.work(took_ms, { delivered, left: 2 });
    assert.equal(opened.queue.leased, 2);
    const { endpoints, environments, accounts } = opened.queue.capacity();
    assert.deepEqual(
      [endpoints.whe_1, environments.env_1, accounts.one],
      expected.map((most) => Math.max(0, most - 2)),
    );
  });
}

Deno.test("DeliveryQueue.capacity() leaves a quarter of all leases to other accounts", async () => {
  const opened = new Opened();
  for (let i = 0; i < 4; i++) {
    await opened.train(40, 1, { endpoint_id: `whe_${i}` });
    await opened.add(many(150, { endpoint_id: `whe_${i}` }));
  }
  assert.ok(opened.queue.capacity().accounts.one! <= 768 - 600);
});

Deno.test("DeliveryQueue.cancelSurplus() cancels what waits at a slowed endpoint", async () => {
  const opened = new Opened();
  await opened.add(many(200));
  await opened.work(10, { left: 160 });
  opened.queue.cancelSurplus();
  await settled();
  assert.equal(opened.cancelled, 0);
  opened.now_ms += 2_000;
  opened.queue.cancelSurplus();
  await settled();
  const { cancelled } = opened;
  assert.ok(cancelled >= 100, `${cancelled}`);
  assert.equal(opened.queue.leased, 160 - cancelled);
  opened.queue.cancelSurplus();
  await settled();
  assert.equal(opened.cancelled, cancelled);
});

Deno.test("DeliveryQueue.cancel() cancels waiting deliveries, not those in progress", async () => {
  const opened = new Opened();
  await opened.add(many(20));
  opened.queue.cancel("whe_1");
  await settled();
  assert.deepEqual([opened.cancelled, opened.queue.leased], [16, 4]);
  await opened.work(1);
  const { endpoints } = opened.queue.capacity();
  assert.deepEqual([opened.queue.leased, endpoints], [0, {}]);
});
