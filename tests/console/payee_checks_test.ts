/** Transfers and refunds whose payee the bank has not matched: marked, approved and rejected. */

import assert from "node:assert/strict";
import type { Locator, Page } from "playwright-core";
import { consoleCase, DESKTOP, keepScreenshot, PHONE } from "../support/console/console_case.ts";

const V1 = "/api-v1-payments/v1";
const IBAN = "FR1420041010050500013M02606";

const button = (page: Page, name: string) => page.getByRole("button", { name, exact: true });
const region = (page: Page, name: string) => page.getByRole("region", { name, exact: true });

consoleCase("payees without a match wait for an approval", async (step, { start, enter }) => {
  const { page } = await enter("#/transfers");
  const go = (place: string) => page.goto(`${page.url().split("#")[0]}#/${place}`);
  const made = async (path: string, body: object) =>
    (await start.call("POST", path, body)).body as { id: string };
  const payment = await made(`${V1}/payments`, {
    amount: 10_000,
    currency: "EUR",
    iban: "DE89370400440532013000",
    outcome: "success",
  });
  const refund = (holder_name: string, amount: number) =>
    made(`${V1}/payments/${payment.id}/refund`, {
      amount,
      destination: { iban: IBAN, holder_name },
    });
  /** Keeps pictures of the page, on which a part is not cut off. */
  const keepViews = async (name: string, shown: Locator) => {
    for (const [size, viewport] of [["phone", PHONE], ["desktop", DESKTOP]] as const) {
      await page.setViewportSize(viewport);
      await shown.scrollIntoViewIfNeeded();
      await keepScreenshot(page, `${name}-${size}`);
      const { x, width } = (await shown.boundingBox())!;
      assert.ok(x + width <= viewport.width, `it ends at ${x + width}`);
    }
  };

  await step("a transfer from the form waits, and its page says why", async () => {
    await go("transfers/new");
    await page.getByLabel("Amount", { exact: true }).fill("5.00");
    await page.getByLabel(/^Account holder/).fill("No match Ltd");
    await button(page, "Create transfer").click();
    await page.getByText("The account belongs to another name.").waitFor();
    await page.getByRole("heading", { name: "Payee: no match" }).waitFor();
    await keepViews("payee-transfer", button(page, "Reject"));
  });

  await step("the list marks it, and not one whose payee matches", async () => {
    const destination = { iban: IBAN, holder_name: "Match Ltd" };
    await made(`${V1}/transfers`, { amount: 700, currency: "EUR", destination });
    await page.getByRole("link", { name: "Transfers", exact: true }).first().click();
    const rows = page.getByRole("table", { name: "Transfers" }).locator("tbody tr");
    await rows.nth(1).waitFor();
    assert.match(await rows.nth(1).innerText(), /Pending\s*Payee: no match/);
    assert.doesNotMatch(await rows.nth(0).innerText(), /Payee/);
    await keepViews("payee-transfers", page.getByRole("table", { name: "Transfers" }));
    await rows.nth(1).getByRole("link").click();
  });

  await step("its approval completes it, and keeps the result", async () => {
    await button(page, "Approve").click();
    await page.getByText("Transfer approved.").waitFor();
    await page.locator(".under-title").getByText("Completed", { exact: true }).waitFor();
    assert.equal(await button(page, "Approve").count(), 0);
    assert.match(await region(page, "Details").innerText(), /Payee\s+No match/);
  });

  await step("a rejected transfer has failed", async () => {
    const destination = { iban: IBAN, holder_name: "Close match Ltd" };
    const { id } = await made(`${V1}/transfers`, { amount: 800, currency: "EUR", destination });
    await go(`transfers/${id}`);
    await page.getByText("The account belongs to a similar name.").waitFor();
    await button(page, "Reject").click();
    await page.getByText("Transfer rejected.").waitFor();
    await page.locator(".under-title").getByText("Failed", { exact: true }).waitFor();
  });

  await step("refunds are marked in the list, approved and rejected on their page", async () => {
    await refund("No match Ltd", 1000);
    const { id } = await refund("Close match Ltd", 2000);
    await go("refunds");
    const rows = page.getByRole("table", { name: "Refunds" }).locator("tbody tr");
    await rows.nth(1).waitFor();
    assert.match(await rows.nth(1).innerText(), /Pending\s*Payee: no match/);
    await go(`refunds/${id}`);
    await button(page, "Approve the refund of 10.00 EUR").waitFor();
    await keepViews("payee-refunds", button(page, "Reject the refund of 10.00 EUR"));
    await button(page, "Approve the refund of 10.00 EUR").click();
    await page.getByText("Refund completed.").waitFor();
    await button(page, "Reject the refund of 20.00 EUR").click();
    await page.getByText("Refund failed: its amount can be refunded again.").waitFor();
    const shown = region(page, "Refunds");
    await shown.getByText("Failed", { exact: true }).waitFor();
    assert.equal(await shown.getByText(/^Payee:/).count(), 0);
  });
});
