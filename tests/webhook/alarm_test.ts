/** Alarms: a process wakes itself for the work that it has rescheduled. */

import assert from "node:assert/strict";
import { Alarm } from "../../shared/jobs/alarm.ts";
import { until } from "../support/common/until.ts";
import { card, PAYMENTS, serviceCase } from "../support/service/service_case.ts";
import { addEndpoint } from "../support/webhook/recording_receiver.ts";
import { webhookCase } from "../support/webhook/webhook_case.ts";

Deno.test("Alarm rings at each of its times, in any order, and not after close()", async () => {
  const rung: number[] = [];
  const alarm = new Alarm(Date.now, () => rung.push(Date.now()));
  const now = Date.now();
  const times = [now + 60, now + 20, now + 40];
  for (const at_ms of times) alarm.at(at_ms);
  await until("the last has rung", () => rung.some((at_ms) => at_ms >= now + 60));
  // A busy process rings once for several times that have passed.
  assert.ok(rung.length <= 3 && rung[0]! >= now + 20, rung.join(", "));
  // Deno fails a test that leaves a timer.
  alarm.at(Date.now() + 60_000);
  alarm.close();
  alarm.at(Date.now());
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.ok(rung.length <= 3);
});

Deno.test("Alarm takes 1 000 times, and none in more than ten minutes", () => {
  let now = 0;
  const set: number[] = [];
  const original = globalThis.setTimeout;
  globalThis.setTimeout = ((_: unknown, ms: number) => set.push(ms)) as never;
  try {
    const alarm = new Alarm(() => now, () => {});
    alarm.at(10 * 60_000 + 1);
    assert.deepEqual(set, []);
    alarm.at(10 * 60_000);
    for (let i = 1; i < 1_000; i++) alarm.at(10 * 60_000 - i);
    assert.equal(set.length, 1_000);
    alarm.at(1);
    assert.equal(set.length, 1_000);
    now = 1;
    alarm.close();
  } finally {
    globalThis.setTimeout = original;
  }
});

webhookCase(
  "a dispatcher retries when the retry is due, without a wake",
  async (_, service, hooks) => {
    await addEndpoint(service, hooks.url("/"));
    hooks.judge = () => hooks.arrivals.length === 1 ? 500 : 200;
    await service.make({ outcome: "pending" });
    await until("the retry has arrived", () => hooks.arrivals.length === 2, 15_000);
    const [first, second] = hooks.arrivals;
    const wait_ms = second!.at - first!.at;
    assert.ok(wait_ms >= 4_500 && wait_ms < 7_000, `${wait_ms} ms`);
  },
);

serviceCase("a late response of the sandbox comes when it is due, without a wake", async (
  _,
  service,
) => {
  const began = performance.now();
  const { body } = await service.pay(card("4000 0000 0000 0119"));
  assert.equal(body.status, "processing");
  await until("the payment is completed", async () => {
    const { body: { status } } = await service.call("GET", `${PAYMENTS}/${body.id}`);
    return status === "completed";
  }, 10_000);
  const took_ms = performance.now() - began;
  assert.ok(took_ms >= 1_900 && took_ms < 4_000, `${took_ms} ms`);
});
