/** The reads that a page makes by itself: after changes, and how often. */

import assert from "node:assert/strict";
import {
  consoleCase,
  moveClock,
  pasteKey,
  withoutChanges,
} from "../support/console/console_case.ts";
import { until } from "../support/common/until.ts";

const PAYMENT = { amount: 50, currency: "EUR", card: { token: "pm_card_visa" }, reference: "SEEN" };
const FAULT = { on: "delivery", fault: "duplicate" };

consoleCase("a page reads after changes, and a hidden tab once a minute", async (step, place) => {
  const { send } = place;
  const { page, requests, see, go } = await place.open("#/payments");
  await page.clock.install();
  await pasteKey(page, place.start.test_key);
  await see("No payments yet");
  const hide = (hidden: boolean) =>
    page.evaluate((hidden) => {
      Object.defineProperty(document, "hidden", { configurable: true, value: hidden });
      document.dispatchEvent(new Event("visibilitychange"));
    }, hidden);
  /** The requests of a span without the waiting reads, and the number of these. */
  const within = async (ms: number) => {
    const before = requests.length;
    await page.waitForTimeout(ms);
    const sent = requests.slice(before);
    const others = sent.filter((request) => !request.includes("/changes?"));
    return { others, waits: sent.length - others.length };
  };
  const settled = async () => {
    await page.waitForTimeout(3_000);
    await until(
      "the page has read what has changed",
      async () => (await within(1_500)).others.length === 0,
    );
  };

  await step("an idle page has one read, which waits", async () => {
    await settled();
    const { others, waits } = await within(8_000);
    assert.deepEqual(others, []);
    assert.ok(waits <= 1, `${waits} reads in 8 s`);
  });
  const CHANGES: [at: string, change: () => Promise<unknown>, shows: string][] = [
    ["payments", () => place.make("payments", PAYMENT), "SEEN"],
    ["requests", () => send("GET", "payments?limit=77"), "limit=77"],
    ["faults", () => send("POST", "/api-v1-sandbox/faults", FAULT), "duplicate"],
    ["payments", () => send("POST", "/api-v1-sandbox/clock", { mode: "frozen" }), "frozen"],
  ];
  for (const [at, change, shows] of CHANGES) {
    await step(`"${shows}" is on the page of ${at} within three seconds`, async () => {
      await go(at);
      await settled();
      assert.equal(await page.getByText(shows).locator("visible=true").count(), 0);
      await change();
      const began = performance.now();
      await see(shows);
      const took_ms = performance.now() - began;
      assert.ok(took_ms < 3_000, `${took_ms} ms`);
    });
  }
  await step("a hidden tab asks once a minute, and at once when it is visible again", async () => {
    await hide(true);
    await page.waitForTimeout(300);
    const before = requests.length;
    await moveClock(page, 60_000);
    assert.match(requests.slice(before).join(), /^[^,]*\/changes\?[^,]*wait=0$/);
    const next = page.waitForRequest(() => true, { timeout: 1_000 });
    await hide(false);
    await next;
  });
  await step("after a 429 it waits for the Retry-After", async () => {
    await go("payments");
    await settled();
    let limited = 0;
    const error = { type: "rate_limit", code: "rate_limited", message: "Many", request_id: "r" };
    await page.route("**/v1/payments?*", (route) => {
      limited++;
      return route.fulfill({ status: 429, headers: { "Retry-After": "60" }, json: { error } });
    });
    await place.make("payments", PAYMENT);
    await see("rate_limited");
    await moveClock(page, 50_000);
    assert.equal(limited, 1);
    await page.unroute("**/v1/payments?*");
    await moveClock(page, 12_000);
    await page.getByText("rate_limited").waitFor({ state: "detached" });
  });
  await step("of a service without reads of changes it reads every two seconds", async () => {
    await withoutChanges(page);
    await place.make("payments", PAYMENT);
    const lists = () => requests.filter((url) => url.includes("/payments?")).length;
    await until("the page polls", async () => {
      const before = lists();
      await page.waitForTimeout(4_500);
      return lists() - before >= 2;
    });
    const before = lists();
    await page.waitForTimeout(4_500);
    assert.ok(lists() - before <= 3, `${lists() - before} requests in 4.5 s`);
  });
});
