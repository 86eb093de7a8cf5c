/**
 * An advance of 400 days with many pending deliveries: each request responds within its bound, the
 * responses lead to the target, and the attempts come in the order of time. `DELIVERIES=10000`
 * makes the run with as many deliveries; it takes some minutes.
 */

import assert from "node:assert/strict";
import {
  addEndpoint,
  type Arrival,
  deliveriesOf,
  settle,
} from "../support/webhook/recording_receiver.ts";
import { webhookCase } from "../support/webhook/webhook_case.ts";

const DELIVERIES = Number(Deno.env.get("DELIVERIES") ?? 300);
/** The seconds of the sandbox in which the payments are made: fewer than the first retry waits. */
const TIMES = 4;
const CLIENTS = 32;
const DAYS = 400;
/** A request works for 2 seconds, and ends the step that it has begun. */
const LONGEST_MS = 10_000;
const CLOCK = "/api-v1-sandbox/clock";

/** About every third delivery is accepted at its third attempt, the others at their second. */
function accepts({ event, headers }: Arrival): boolean {
  const sum = [...event.id as string].reduce((sum, letter) => sum + letter.charCodeAt(0), 0);
  const needs = sum % 3 === 0 ? 3 : 2;
  return Number(headers.get("Webhook-Attempt")) >= needs;
}

webhookCase(
  `an advance of ${DAYS} days with ${DELIVERIES} deliveries`,
  async (t, service, hooks) => {
    const set = (body: unknown) => service.call("POST", CLOCK, { body });
    await set({ mode: "frozen" });
    await addEndpoint(service, hooks.url("/hook"), { events: ["payment.created"] });
    hooks.judge = (arrival) => accepts(arrival) ? 200 : 500;
    for (let time = 0; time < TIMES; time++) {
      let made = 0;
      await Promise.all(Array.from({ length: CLIENTS }, async () => {
        while (made++ < DELIVERIES / TIMES) await service.make({ outcome: "pending" });
      }));
      await settle(service);
      if (time < TIMES - 1) await set({ advance: 1 });
    }
    const [before] = await service.sql`
    select count(*) filter (where status = 'pending')::int as pending, count(*)::int as made
    from pay.webhook_deliveries`;
    const first = hooks.arrivals.length;

    let [requests, longest_ms] = [0, 0];
    const targets = new Set<string>();
    let response = { target: null as string | null, has_more: true, did: { deliveries: 0 } };
    for (let body: unknown = { advance: DAYS * 86_400 }; response.has_more; requests++) {
      const began = performance.now();
      const { status, body: clock, text } = await set(body);
      longest_ms = Math.max(longest_ms, performance.now() - began);
      assert.equal(status, 200, text);
      response = clock;
      if (response.has_more) targets.add(response.target!);
      body = { to: response.target };
    }
    console.log(
      `${before!.pending} pending of ${before!.made}: ${requests} requests, the longest ` +
        `${Math.round(longest_ms)} ms, ${response.did.deliveries} attempts`,
    );

    await t.step("each response comes within its bound and names the same target", () => {
      assert.ok(longest_ms < LONGEST_MS, `${longest_ms} ms`);
      assert.ok(targets.size <= 1, [...targets].join());
    });
    await t.step("did counts the attempts, and every delivery has arrived once", () => {
      assert.equal(response.did.deliveries, hooks.arrivals.length - first);
      const accepted = hooks.arrivals.filter(accepts).map(({ event }) => event.id);
      assert.equal(accepted.length, before!.made);
      assert.equal(new Set(accepted).size, before!.made);
    });
    await t.step("each attempt has its own time, and they come in its order", () => {
      const DELAYS_MS = [0, 5_000, 65_000];
      const times = hooks.arrivals.slice(first).map(({ event, headers }) => {
        const attempt = Number(headers.get("Webhook-Attempt"));
        return Date.parse(event.created_at) + DELAYS_MS[attempt - 1]!;
      });
      // A step of the clock does what is due within a second, in any order.
      let latest = 0;
      for (const [i, at] of times.entries()) {
        assert.ok(at >= latest - 1_000, `${new Date(at).toISOString()} at ${i}`);
        latest = Math.max(latest, at);
      }
    });
    await t.step("the deliveries are gone after 30 days of the sandbox", async () => {
      assert.deepEqual(await deliveriesOf(service), []);
    });
  },
);
