/**
 * How much a relay has under way: 16 attempts at one endpoint, 2 at one that is failing, 64 in all.
 * Receivers hold their answers until the test lets them go.
 */

import assert from "node:assert/strict";
import { addEndpoint, settle, until } from "./recording_receiver.ts";
import { webhookCase } from "./webhook_case.ts";

const MAX_PER_ENDPOINT = 16;
const MAX_OF_FAILING = 2;
const MAX_ATTEMPTS = 64;

/** Answers that are held back, by path, and the most that were held at one time. */
function holdAnswers() {
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
    /** Answers the oldest held requests of a path. */
    release(path: string, count: number, as = 200) {
      status = as;
      for (const answer of held.get(path)?.splice(0, count) ?? []) answer();
    },
    count: (path: string) => held.get(path)?.length ?? 0,
    total: () => [...held.values()].reduce((sum, { length }) => sum + length, 0),
  };
}

webhookCase("one endpoint has 16 attempts under way, however they end", async (
  _,
  service,
  hooks,
) => {
  const gate = holdAnswers();
  hooks.judge = gate.judge;
  await addEndpoint(service, hooks.url("/slow"), { events: ["payment.created"] });
  for (let i = 0; i < 60; i++) await service.make({ outcome: "pending" });
  await until("16 are under way", () => gate.count("/slow") === MAX_PER_ENDPOINT);
  for (let ended = 0; ended < 40; ended++) {
    gate.release("/slow", 1);
    await until("the place is taken again", () => gate.count("/slow") >= MAX_PER_ENDPOINT);
  }
  gate.release("/slow", 100);
  hooks.judge = () => 200;
  await until("all have arrived", () => hooks.arrivals.length === 60);
  gate.release("/slow", 100);
  await settle(service);
  assert.equal(gate.most.get("/slow"), MAX_PER_ENDPOINT);
});

webhookCase("a failing endpoint has 2 attempts under way", async (_, service, hooks) => {
  const gate = holdAnswers();
  hooks.judge = gate.judge;
  await addEndpoint(service, hooks.url("/bad"), { events: ["payment.created"] });
  await service.make({ outcome: "pending" });
  await until("the first is under way", () => gate.count("/bad") === 1);
  gate.release("/bad", 1, 500);
  await until("the failure is recorded", async () => {
    const [row] = await service.sql`select failing_since from pay.webhook_endpoints`;
    return row!.failing_since !== null;
  });
  gate.most.clear();
  for (let i = 0; i < 20; i++) await service.make({ outcome: "pending" });
  for (let ended = 0; ended < 10; ended++) {
    await until("2 are under way", () => gate.count("/bad") >= MAX_OF_FAILING);
    gate.release("/bad", 1, 500);
  }
  // Whatever has been claimed beside them would have arrived by now.
  await until("2 are under way", () => gate.count("/bad") >= MAX_OF_FAILING);
  for (let i = 0; i < 5; i++) await service.call("GET", "/api-v1-payments/v1/payments");
  assert.equal(gate.most.get("/bad"), MAX_OF_FAILING);
  hooks.judge = () => 500;
  gate.release("/bad", 100, 500);
  await settle(service);
  assert.equal(hooks.arrivals.length, 21);
});

webhookCase("one success and a failing endpoint is a healthy one again", async (
  _,
  service,
  hooks,
) => {
  const gate = holdAnswers();
  await addEndpoint(service, hooks.url("/back"), { events: ["payment.created"] });
  hooks.judge = () => 500;
  await service.make({ outcome: "pending" });
  await settle(service);
  hooks.judge = () => 200;
  await service.make({ outcome: "pending" });
  await settle(service);
  hooks.judge = gate.judge;
  for (let i = 0; i < 20; i++) await service.make({ outcome: "pending" });
  await until("16 are under way", () => gate.count("/back") === MAX_PER_ENDPOINT);
  hooks.judge = () => 200;
  gate.release("/back", 100);
  await settle(service);
});

webhookCase("64 attempts are under way in all, shared between the endpoints", async (
  _,
  service,
  hooks,
) => {
  const gate = holdAnswers();
  hooks.judge = gate.judge;
  const paths = Array.from({ length: 8 }, (_, i) => `/${i}`);
  for (const path of paths) await addEndpoint(service, hooks.url(path));
  for (let i = 0; i < 20; i++) await service.make({ outcome: "pending" });
  await until("64 are under way", () => gate.total() === MAX_ATTEMPTS);
  for (let i = 0; i < 5; i++) await service.call("GET", "/api-v1-payments/v1/payments");
  assert.equal(gate.total(), MAX_ATTEMPTS);
  hooks.judge = () => 200;
  for (const path of paths) gate.release(path, 100);
  await settle(service);
  assert.equal(hooks.arrivals.length, 160);
});

webhookCase("what has waited long for a place is claimed anew", async (_, service, hooks) => {
  const at_ms = Date.parse("2026-08-09T10:11:12.013Z");
  const gate = holdAnswers();
  hooks.judge = gate.judge;
  await service.setClock(at_ms);
  await addEndpoint(service, hooks.url("/slow"), { events: ["payment.created"] });
  for (let i = 0; i < 24; i++) await service.make({ outcome: "pending" });
  await until("16 are under way", () => gate.count("/slow") === MAX_PER_ENDPOINT);
  await until("all are claimed", async () => {
    const [row] = await service.sql`select count(*)::int as leased from pay.webhook_deliveries
      where leased_until = ${new Date(at_ms + 25_000)}`;
    return row!.leased === 24;
  });
  // Too late to be sent within their lease: whoever sends them must have a fresh one.
  await service.setClock(at_ms + 9_000);
  gate.release("/slow", 1);
  await until("the place is taken again", () => gate.count("/slow") === MAX_PER_ENDPOINT);
  const newest = hooks.arrivals.at(-1)!;
  assert.equal(newest.headers.get("Webhook-Attempt"), "1");
  const [row] = await service.sql`select leased_until, attempt_count from pay.webhook_deliveries
    where event_id = ${newest.event.id}`;
  assert.deepEqual(row, { leased_until: new Date(at_ms + 34_000), attempt_count: 1 });
  hooks.judge = () => 200;
  gate.release("/slow", 100);
  await settle(service);
  assert.equal(hooks.arrivals.length, 24);
});
