/**
 * The page of requests: those of programs appear by themselves, and each leads to the resource that
 * it names. The reads of the console use up no declared fault, and its actions meet them.
 */

import assert from "node:assert/strict";
import { consoleCase } from "../support/console/console_case.ts";

const FAULTS = "/api-v1-sandbox/faults";

consoleCase("requests appear, and each leads to its resource", async (step, place) => {
  const { make, send } = place;
  const { page, region, go, hash, link, press, see, field, heading, showsRows, ...on } = await place
    .enter("#/requests");
  const rows = on.rows("Requests");
  const pay = (body: object) => make("payments", { amount: 700, currency: "EUR", ...body });
  await step("a request of a program appears without a reload", async () => {
    await see("No requests yet");
    await pay({});
    await rows.filter({ hasText: "POST /payments" }).waitFor();
  });
  await step("so does the next one, at the top", async () => {
    await pay({ currency: "EURO" });
    await rows.first().getByText("400").waitFor();
    assert.equal(await rows.count(), 2);
  });
  await step("a request of this page is in the list only on request", async () => {
    await link("Faults").click();
    await link(/Declare/).first().click();
    await press("Declare fault");
    await see(/[01]\sof\s1/);
    await link("Requests").click();
    await rows.nth(1).waitFor();
    assert.equal(await rows.filter({ hasText: "web page" }).count(), 0);
    await field("Sent by").selectOption("Any");
    await rows.filter({ hasText: "web page" }).first().waitFor();
    // The first request of a program meets the fault.
    await send("GET", "payments");
  });

  const paid = await pay({ amount: 5000, outcome: "success" });
  const refund = await make(`payments/${paid}/refund`, { amount: 100 });
  await send("GET", `refunds/${refund}`);
  await step("the read of a refund leads to its payment", async () => {
    await go("requests");
    const shown = `/refunds/re_…${refund.slice(-4)}`;
    const row = rows.filter({ has: page.getByText(shown, { exact: true }) });
    await row.first().locator(".mention").click();
    await region("Timeline").waitFor();
    assert.equal(hash(), `#/payments/${paid}`);
    await heading("50.00 EUR").waitFor();
  });
  await step(
    "a request that a fault has hidden tells what it made, and the fault its request",
    async () => {
      const fault = await make(FAULTS, { on: "request", fault: "server_error_after" });
      await send("POST", "payments", { amount: 4400, currency: "EUR", outcome: "success" });
      await go("requests?status=5xx");
      await showsRows("Requests", 1);
      await rows.first().locator(".row-link").click();
      await see("A declared fault decided the response:", "server_error_after");
      await region("Events").getByText("payment.completed").waitFor();
      await page.locator(".notice .mention").click();
      assert.equal(hash(), `#/faults/${fault}`);
      await link("Its requests").click();
      await showsRows("Requests", 1);
      await rows.first().locator(".mention").click();
      await heading("44.00 EUR").waitFor();
      await link("Those of this payment").click();
      await showsRows("Requests", 1);
      await rows.first().getByText("500").waitFor();
    },
  );
  await step("each create has its resource, and the last errors have no decline", async () => {
    const card = { number: "4000 0000 0000 0002", exp_month: 12, exp_year: 2034, cvc: "123" };
    await send("POST", "payments", { amount: 700, currency: "EUR", card });
    await go("requests");
    // An id can have these digits, too.
    await rows.filter({ hasText: /402POST/ }).waitFor();
    const created = rows.filter({ hasText: /(?:20[01]|402)POST/ });
    await created.filter({ hasNot: page.locator(".mention") }).first()
      .waitFor({ state: "detached" });
    await go("");
    const errors = region("Last errors");
    await errors.getByText("internal_error").waitFor();
    await errors.getByText("invalid_parameter").waitFor();
    assert.equal(await errors.getByText("402").count(), 0);
  });
  await step("a resource that does not exist says so", async () => {
    await go(`refunds/re_${"0".repeat(26)}`);
    await see("Cannot show this refund.");
  });
});

consoleCase("the reads of the console use up no declared fault", async (step, place) => {
  const { start, send, make } = place;
  const declare = (fault: Record<string, unknown>) => make(FAULTS, { on: "request", ...fault });
  const left = async (id: string): Promise<number> => (await send("GET", `${FAULTS}/${id}`)).left;

  const limited = await declare({ fault: "rate_limited" });
  await step("the link of the start opens while the next request fails", async () => {
    const { see } = await place.open(`#key=${start.test_key}`);
    await see("No payments yet");
    assert.equal(await left(limited), 1);
  });

  const { page, region, heading, go, see, press } = await place.enter("#/payments");
  for (const section of ["Transfers", "Balance", "Events", "Webhooks", "Requests", "Faults"]) {
    await step(`the page ${section} uses none up`, async () => {
      const read = page.waitForResponse((response) => response.url().includes("/functions/v1/"));
      await page.getByRole("navigation", { name: "Sections" }).getByText(section).click();
      await page.getByRole("heading", { name: section, level: 1 }).waitFor();
      await read;
      assert.equal(await left(limited), 1);
    });
  }
  await step("nor does a page that waits for changes", async () => {
    await see("1 of 1");
    await page.waitForResponse((response) => response.url().includes("/changes?"));
    assert.equal(await left(limited), 1);
  });
  await step("the page of a payment uses none up", async () => {
    await send("DELETE", `${FAULTS}/${limited}`);
    const payment = await make("payments", { amount: 500, currency: "EUR" });
    const lost = await declare({ fault: "connection_lost_after", times: 3 });
    await go(`payments/${payment}`);
    await region("Timeline").getByText("payment.created").waitFor();
    assert.equal(await left(lost), 3);
    await send("DELETE", `${FAULTS}/${lost}`);
  });
  await step("a request of a program gets the fault", async () => {
    const fault = await declare({ fault: "server_error_before" });
    const response = await start.call("GET", "/api-v1-payments/v1/payments");
    assert.equal(response.status, 500);
    assert.equal(await left(fault), 0);
  });
  await step("an action of the console meets it, and the panel shows it", async () => {
    const fault = await declare({ fault: "rate_limited" });
    await go("payments/new");
    const refused = page.waitForResponse((response) => response.status() === 429);
    await press("Create payment");
    assert.equal((await refused).headers()["sandbox-fault"], "rate_limited");
    // The client of the page retries with the same idempotency key.
    await heading("19.99 EUR").waitFor();
    assert.equal(await left(fault), 0);
  });
});
