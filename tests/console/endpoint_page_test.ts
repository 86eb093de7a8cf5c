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

const V1 = "/api-v1-payments/v1";

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

consoleCase("the page of an endpoint", async (step, { enter, start, origin }) => {
  const receiver = openRecorder(() => 503);
  const make = async (path: string, body: unknown): Promise<string> =>
    ((await start.call("POST", path, body)).body as { id: string }).id;
  const endpoint = await make(`${V1}/webhook_endpoints`, { url: receiver.url("/hook") });
  const pay = () =>
    make("/api-v1-sandbox/payments", { amount_minor: 900, currency: "EUR", outcome: "refunded" });
  await pay();
  const { page } = await enter(`#/webhooks/${endpoint}`);
  const region = (name: string) => page.getByRole("region", { name, exact: true });
  try {
    await step("the newest failures name their result, and nothing has succeeded", async () => {
      const failures = region("Newest failures");
      await failures.getByText("503").first().waitFor();
      await failures.getByText("payment.created").first().waitFor();
      assert.match(await region("Success").innerText(), /^Success\s+0 %/);
      await region("Success").getByRole("img", { name: /Succeeded 0, Failed [1-9]\d*$/ }).waitFor();
    });
    await step("the deliveries that wait are below the one that blocks them", async () => {
      const items = region("Deliveries").locator(".records > li");
      await items.getByText(/^4 later events wait for it: payment.completed, /).waitFor();
      assert.equal(await items.count(), 1);
    });
    await step("a page without the one that blocks reads it", async () => {
      await page.route("**/webhook_deliveries?*limit=20*", async (route) => {
        const response = await route.fetch();
        const body = await response.json();
        await route.fulfill({
          response,
          json: { ...body, data: body.data.filter((it: WebhookDelivery) => it.blocked_by) },
        });
      });
      await page.waitForRequest(/webhook_deliveries\/whd_/);
      const items = region("Deliveries").locator(".records > li");
      await items.getByText("payment.created", { exact: true }).waitFor();
      assert.equal(await items.count(), 1);
      await page.unrouteAll({ behavior: "wait" });
    });
    await step("what was missed is recovered, from a time on", async () => {
      // The disabled endpoint cancels what waits.
      await page.getByRole("button", { name: "Disable" }).click();
      await page.getByText("Endpoint disabled.").waitFor();
      const recover = page.getByRole("button", { name: "Recover since…" });
      await recover.waitFor({ state: "detached" });
      await page.getByRole("button", { name: "Enable" }).click();
      receiver.judge = () => 204;
      receiver.arrivals.length = 0;
      await recover.click();
      const dialog = page.getByRole("dialog", { name: "Recover deliveries" });
      await dialog.getByLabel("Since").fill("last week");
      await dialog.getByRole("button", { name: "Recover" }).click();
      await dialog.locator(".fault").getByText(/^Not a time/).waitFor();
      await dialog.getByLabel("Since").fill(new Date(Date.now() - 3_600_000).toISOString());
      await dialog.getByRole("button", { name: "Recover" }).click();
      await page.getByText("5 deliveries are pending again.").waitFor();
      await until("they arrive", () => receiver.arrivals.length === 5);
      await region("Success").getByText(/^[1-9][\d.]* %$/).waitFor();
    });
    await step("a long period is recovered in parts", async () => {
      const bodies: Record<string, unknown>[] = [];
      await page.route("**/recover", (route) => {
        bodies.push(route.request().postDataJSON());
        const is_first = bodies.length === 1;
        return route.fulfill({
          status: 202,
          json: {
            object: "recovery",
            endpoint_id: endpoint,
            count: is_first ? 5_000 : 7,
            has_more: is_first,
            next_cursor: is_first ? "whd_1" : null,
          },
        });
      });
      await page.getByRole("button", { name: "Recover since…" }).click();
      const dialog = page.getByRole("dialog", { name: "Recover deliveries" });
      await dialog.getByRole("button", { name: "Recover", exact: true }).click();
      await dialog.getByText("5,000 deliveries recovered. The period has more.").waitFor();
      await dialog.getByRole("button", { name: "Recover the rest" }).click();
      await page.getByText("5,007 deliveries are pending again.").waitFor();
      const [first, second] = bodies;
      assert.deepEqual(second, { ...first, starting_after: "whd_1" });
      await page.unrouteAll({ behavior: "wait" });
    });
    await step("an inbox is acknowledged", async () => {
      const inbox = await make(`${V1}/webhook_endpoints`, {
        delivery: "inbox",
        metadata: { team: "shop" },
      });
      await pay();
      await page.goto(`${origin}/console/#/webhooks/${inbox}`);
      await region("Details").getByText("metadata.team").waitFor();
      await page.getByRole("button", { name: "Acknowledge these 5" }).click();
      await page.getByText("5 deliveries acknowledged.").waitFor();
      await page.getByText("The inbox is empty").waitFor();
    });
  } finally {
    await receiver.close();
  }
});
