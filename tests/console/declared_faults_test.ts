/**
 * Declared faults are for the requests that the user tests: the reads of the console use up none,
 * and its actions meet them.
 */

import assert from "node:assert/strict";
import { consoleCase } from "../support/console/console_case.ts";

const FAULTS = "/api-v1-sandbox/faults";

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
  const polled = () => page.waitForResponse((response) => response.url().endsWith("/clock"));
  for (const section of ["Transfers", "Balance", "Events", "Webhooks", "Requests", "Faults"]) {
    await step(`the page ${section} uses none up`, async () => {
      const read = page.waitForResponse((response) => response.url().includes("/functions/v1/"));
      await page.getByRole("navigation", { name: "Sections" }).getByText(section).click();
      await page.getByRole("heading", { name: section, level: 1 }).waitFor();
      await read;
      assert.equal(await left(limited), 1);
    });
  }
  await step("nor does a page that reads again", async () => {
    await see("1 of 1");
    for (let i = 0; i < 2; i++) await polled();
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
