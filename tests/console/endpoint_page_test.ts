/**
 * The page of an endpoint: its success over time, its newest failures, the deliveries that wait
 * below the one that blocks them, the recovery of a period, and the inbox.
 */

import assert from "node:assert/strict";
import type { WebhookDelivery } from "../../packages/client/mod.ts";
import { attemptsOf, bucketsOf, healthOf } from "../../apps/console/data/attempts.ts";
import { openRecorder } from "../support/webhook/recording_receiver.ts";
import { until } from "../support/common/until.ts";
import { consoleCase } from "../support/console/console_case.ts";

/** Deliveries with one attempt each, by its second and its status; null: there was no response. */
function deliveriesOf(...attempts: [second: number, status: number | null][]): WebhookDelivery[] {
  return attempts.map(([second, response_status], i) => ({
    id: `whd_${i}`,
    attempts: [{
      number: 1,
      at: new Date(Date.UTC(2026, 10, 24) + second * 1000).toISOString(),
      response_status,
      duration_ms: 100 * (i + 1),
      error: null,
    }],
  })) as unknown as WebhookDelivery[];
}

Deno.test("healthOf() rounds the share of success down", () => {
  const share = (taken: number, failed: number) =>
    healthOf(attemptsOf(deliveriesOf(
      ...Array.from({ length: taken }, (): [number, number] => [0, 204]),
      ...Array.from({ length: failed }, (): [number, null] => [0, null]),
    ))).percent;
  assert.deepEqual(
    [share(1, 0), share(0, 1), share(1, 1), share(2, 1), share(1999, 1)],
    ["100", "0", "50", "66.6", "99.9"],
  );
});

Deno.test("healthOf() gives quantiles of the durations", () => {
  const attempts = attemptsOf(deliveriesOf(...Array.from({ length: 20 }, (): [number, number] => [
    0,
    200,
  ])));
  const { median_ms, slow_ms } = healthOf(attempts);
  assert.deepEqual([median_ms, slow_ms], [1000, 1900]);
});

Deno.test("bucketsOf() counts each attempt once, the first and the last at the ends", () => {
  const attempts = attemptsOf(deliveriesOf([0, 500], [1, 204], [7200, 204], [86_400, 301]));
  const buckets = bucketsOf(attempts);
  assert.equal(buckets.length, 24);
  const sum = (name: "taken" | "failed") => buckets.reduce((total, it) => total + it[name], 0);
  assert.deepEqual([sum("taken"), sum("failed")], [2, 2]);
  assert.deepEqual([buckets[0]!.taken, buckets[0]!.failed], [1, 1]);
  assert.equal(buckets.at(-1)!.failed, 1);
});

consoleCase("the page of an endpoint", async (step, { enter, make }) => {
  const receiver = openRecorder(() => 503);
  const endpoint = await make("webhook_endpoints", { url: receiver.url("/hook") });
  const pay = () =>
    make("/api-v1-sandbox/payments", { amount_minor: 900, currency: "EUR", outcome: "refunded" });
  await pay();
  const { page, region, press, see, submit, fault, go, button, showOnlyWaiting } = await enter(
    `#/webhooks/${endpoint}`,
  );
  const items = region("Deliveries").locator(".records > li");
  try {
    await step("the newest failures name their result, and nothing has succeeded", async () => {
      await region("Newest failures").getByText("503").first().waitFor();
      await region("Newest failures").getByText("payment.created").first().waitFor();
      assert.match(await region("Success").innerText(), /^Success\s+0 %/);
      await region("Success").getByRole("img", { name: /Succeeded 0, Failed [1-9]\d*$/ }).waitFor();
    });
    await step("the deliveries that wait are below the one that blocks them", async () => {
      await items.getByText(/^4 later events wait for it: payment.completed, /).waitFor();
      assert.equal(await items.count(), 1);
    });
    await step("a page without the one that blocks reads it", async () => {
      await showOnlyWaiting();
      await page.waitForRequest(/webhook_deliveries\/whd_/);
      await items.getByText("payment.created", { exact: true }).waitFor();
      assert.equal(await items.count(), 1);
      await page.unrouteAll({ behavior: "wait" });
    });
    await step("what was missed is recovered, from a time on", async () => {
      // The disabled endpoint cancels what waits.
      await press("Disable");
      await see("Endpoint disabled.");
      await button("Recover since…").waitFor({ state: "detached" });
      await press("Enable");
      receiver.judge = () => 204;
      receiver.arrivals.length = 0;
      await button("Recover since…").click();
      await submit({ Since: "last week" }, "Recover");
      await fault(/^Not a time/).waitFor();
      const since = new Date(Date.now() - 3_600_000).toISOString();
      await submit({ Since: since }, "Recover", "5 deliveries are pending again.");
      await until("they arrive", () => receiver.arrivals.length === 5);
      await region("Success").getByText(/^[1-9][\d.]* %$/).waitFor();
    });
    await step("a long period is recovered in parts", async () => {
      const bodies: Record<string, unknown>[] = [];
      await page.route("**/recover", (route) => {
        bodies.push(route.request().postDataJSON());
        const has_more = bodies.length === 1;
        const recovery = { object: "recovery", endpoint_id: endpoint, has_more };
        const rest = has_more ? { count: 5_000, next_cursor: "whd_1" } : { count: 7 };
        return route.fulfill({ status: 202, json: { next_cursor: null, ...recovery, ...rest } });
      });
      await press("Recover since…", "Recover");
      await see("5,000 deliveries recovered. The period has more.");
      await press("Recover the rest");
      await see("5,007 deliveries are pending again.");
      const [first, second] = bodies;
      assert.deepEqual(second, { ...first, starting_after: "whd_1" });
      await page.unrouteAll({ behavior: "wait" });
    });
    await step("an inbox is acknowledged", async () => {
      const metadata = { team: "shop" };
      const inbox = await make("webhook_endpoints", { delivery: "inbox", metadata });
      await pay();
      await go(`webhooks/${inbox}`);
      await see("metadata.team");
      await press("Acknowledge these 5");
      await see("5 deliveries acknowledged.", "The inbox is empty");
    });
  } finally {
    await receiver.close();
  }
});
