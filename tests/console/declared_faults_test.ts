/**
 * Declared faults are for the requests that the user tests: the reads of the console use up none,
 * and its actions meet them.
 */

import assert from "node:assert/strict";
import { consoleCase } from "../support/console/console_case.ts";

const V1 = "/api-v1-payments/v1";
const FAULTS = "/api-v1-sandbox/faults";

consoleCase("the reads of the console use up no declared fault", async (step, place) => {
  const { start, enter, origin } = place;
  const declare = async (fault: Record<string, unknown>): Promise<string> =>
    ((await start.call("POST", FAULTS, { on: "request", ...fault })).body as { id: string }).id;
  const left = async (id: string) =>
    ((await start.call("GET", `${FAULTS}/${id}`)).body as { left: number }).left;

  const limited = await declare({ fault: "rate_limited" });
  await step("the link of the start opens while the next request fails", async () => {
    const { page } = await place.open(`#key=${start.test_key}`);
    await page.getByText("No payments yet").waitFor();
    assert.equal(await left(limited), 1);
  });

  const { page } = await enter("#/payments");
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
    await page.getByText("1 of 1").waitFor();
    for (let i = 0; i < 2; i++) await polled();
    assert.equal(await left(limited), 1);
  });
  await step("the page of a payment uses none up", async () => {
    await start.call("DELETE", `${FAULTS}/${limited}`);
    const { body } = await start.call("POST", `${V1}/payments`, { amount: 500, currency: "EUR" });
    const lost = await declare({ fault: "connection_lost_after", times: 3 });
    await page.goto(`${origin}/console/#/payments/${(body as { id: string }).id}`);
    await page.getByRole("region", { name: "Timeline" }).getByText("payment.created").waitFor();
    assert.equal(await left(lost), 3);
    await start.call("DELETE", `${FAULTS}/${lost}`);
  });
  await step("a request of a program gets the fault", async () => {
    const fault = await declare({ fault: "server_error_before" });
    const response = await start.call("GET", `${V1}/payments`);
    assert.equal(response.status, 500);
    assert.equal(await left(fault), 0);
  });
  await step("an action of the console meets it, and the panel shows it", async () => {
    const fault = await declare({ fault: "rate_limited" });
    await page.goto(`${origin}/console/#/payments/new`);
    const refused = page.waitForResponse((response) => response.status() === 429);
    await page.getByRole("button", { name: "Create payment" }).click();
    assert.equal((await refused).headers()["sandbox-fault"], "rate_limited");
    // The client of the page retries with the same idempotency key.
    await page.getByRole("heading", { name: "19.99 EUR" }).waitFor();
    assert.equal(await left(fault), 0);
  });
});
