/**
 * Attempts in progress at the same time at a fast and at a failing endpoint, from the lease to the
 * record. delivery_queue_test.ts has all limits. Receivers hold their responses until the test
 * releases them.
 */

import assert from "node:assert/strict";
import { addEndpoint, settle } from "../support/webhook/recording_receiver.ts";
import type { TestService } from "../support/service/service.ts";
import { webhookCase } from "../support/webhook/webhook_case.ts";
import { until } from "../support/common/until.ts";

const MAX_OF_NEW = 4;
const MAX_OF_QUICK = 16;
const MAX_OF_FAILING = 2;

/**
 * Creates payments whose events become due at all endpoints at the same moment. Otherwise the first
 * attempts would count as slow while a slow machine creates further payments.
 */
async function makeDue(service: TestService, count: number): Promise<void> {
  const { sql, deps } = service;
  await sql`update pay.webhook_endpoints set status = 'disabled'`;
  const ids: string[] = [];
  for (let i = 0; i < count; i++) ids.push((await service.make({ outcome: "pending" })).body.id);
  await sql`update pay.webhook_endpoints set status = 'enabled'`;
  await sql`
    insert into pay.webhook_deliveries (environment_id, id, event_id, event_type, endpoint_id,
      subject_id, sequence, status, next_attempt_at, created_at)
    select e.environment_id, 'whd_' || substr(e.id, 5) || t.slot, e.id, e.type, t.id, e.subject_id,
      e.sequence, 'pending', e.created_at, e.created_at
    from pay.events e, pay.webhook_endpoints t where e.subject_id = any (${ids})`;
  void deps.webhooks!.dispatcher.notify();
}

/** Holds responses by path, and counts how many were held at the same time. */
function holdResponses() {
  const held = new Map<string, (() => void)[]>();
  const most = new Map<string, number>();
  let status = 200;
  return {
    held,
    most,
    judge({ path }: { path: string }): Promise<number> {
      const waiting = held.get(path) ?? [];
      held.set(path, waiting);
      return new Promise((resolve) => {
        waiting.push(() => resolve(status));
        most.set(path, Math.max(most.get(path) ?? 0, waiting.length));
      });
    },
    /** Sends the responses to the oldest held requests of a path. */
    release(path: string, count: number, as = 200) {
      status = as;
      for (const respond of held.get(path)?.splice(0, count) ?? []) respond();
    },
    count: (path: string) => held.get(path)?.length ?? 0,
  };
}

webhookCase("a fast endpoint has 16 attempts in progress", async (_, service, hooks) => {
  let [under_way, most] = [0, 0];
  hooks.judge = async () => {
    most = Math.max(most, ++under_way);
    await new Promise((resolve) => setTimeout(resolve, 20));
    under_way--;
    return 200;
  };
  await addEndpoint(service, hooks.url("/quick"));
  await makeDue(service, 200);
  await settle(service);
  assert.deepEqual([hooks.arrivals.length, most], [200, MAX_OF_QUICK]);
});

webhookCase("a failing endpoint has 2 attempts in progress", async (_, service, hooks) => {
  const gate = holdResponses();
  hooks.judge = gate.judge;
  await addEndpoint(service, hooks.url("/bad"), { events: ["payment.created"] });
  await service.make({ outcome: "pending" });
  await until("the first is in progress", () => gate.count("/bad") === 1);
  gate.release("/bad", 1, 500);
  await until("the failure is recorded", async () => {
    const [row] = await service.sql`select failing_since from pay.webhook_endpoints`;
    return row!.failing_since !== null;
  });
  gate.most.clear();
  for (let i = 0; i < 20; i++) await service.make({ outcome: "pending" });
  for (let ended = 0; ended < 10; ended++) {
    await until("2 are in progress", () => gate.count("/bad") >= MAX_OF_FAILING);
    gate.release("/bad", 1, 500);
  }
  // A further lease would have arrived by now.
  await until("2 are in progress", () => gate.count("/bad") >= MAX_OF_FAILING);
  for (let i = 0; i < 5; i++) await service.call("GET", "/api-v1-payments/v1/payments");
  assert.equal(gate.most.get("/bad"), MAX_OF_FAILING);
  hooks.judge = () => 500;
  gate.release("/bad", 100, 500);
  await settle(service);
  assert.equal(hooks.arrivals.length, 21);
});

webhookCase("a lease that waited long for a slot is renewed", async (_, service, hooks) => {
  const at_ms = Date.parse("2026-08-09T10:11:12.013Z");
  const gate = holdResponses();
  hooks.judge = gate.judge;
  await service.setClock(at_ms);
  await addEndpoint(service, hooks.url("/slow"));
  await makeDue(service, 8);
  await until("4 are in progress", () => gate.count("/slow") === MAX_OF_NEW);
  await until("all are leased", async () => {
    const [row] = await service.sql`select count(*)::int as leased from pay.webhook_deliveries
      where leased_until = ${new Date(at_ms + 25_000)}`;
    return row!.leased === 8;
  });
  // Too late to send the deliveries within their lease, so the dispatcher must renew it.
  await service.setClock(at_ms + 9_000);
  gate.release("/slow", MAX_OF_NEW);
  await until("a slot is taken again", () => hooks.arrivals.length > MAX_OF_NEW);
  const newest = hooks.arrivals[MAX_OF_NEW]!;
  assert.equal(newest.headers.get("Webhook-Attempt"), "1");
  const [row] = await service.sql`select leased_until, attempt_count from pay.webhook_deliveries
    where event_id = ${newest.event.id}`;
  assert.deepEqual(row, { leased_until: new Date(at_ms + 34_000), attempt_count: 1 });
  hooks.judge = () => 200;
  gate.release("/slow", 100);
  await settle(service);
  assert.equal(hooks.arrivals.length, 8);
});
