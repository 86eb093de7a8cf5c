/** Transfers and refunds whose payee the bank has not matched: marked, approved and rejected. */

import assert from "node:assert/strict";
import type { Locator } from "playwright-core";
import { consoleCase, DESKTOP, keepScreenshot, PHONE } from "../support/console/console_case.ts";

const IBAN = "FR1420041010050500013M02606";

consoleCase("payees without a match wait for an approval", async (step, { make, enter }) => {
  const on = await enter("#/transfers");
  const { page, button, region, status, press, see } = on;
  const payment = await make("payments", {
    amount: 10_000,
    currency: "EUR",
    iban: "DE89370400440532013000",
    outcome: "success",
  });
  const refund = (holder_name: string, amount: number) =>
    make(`payments/${payment}/refund`, { amount, destination: { iban: IBAN, holder_name } });
  const transfer = (holder_name: string, amount: number) =>
    make("transfers", { amount, currency: "EUR", destination: { iban: IBAN, holder_name } });
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
    await on.go("transfers/new");
    const fields = { Amount: "5.00", "Account holder": "No match Ltd" };
    await on.submit(fields, "Create transfer", "The account belongs to another name.");
    await on.heading("Payee: no match").waitFor();
    await keepViews("payee-transfer", button("Reject"));
  });

  await step("the list marks it, and not one whose payee matches", async () => {
    await transfer("Match Ltd", 700);
    await on.link("Transfers").first().click();
    const rows = on.rows("Transfers");
    await rows.nth(1).waitFor();
    assert.match(await rows.nth(1).innerText(), /Pending\s*Payee: no match/);
    assert.doesNotMatch(await rows.nth(0).innerText(), /Payee/);
    await keepViews("payee-transfers", page.getByRole("table", { name: "Transfers" }));
    await rows.nth(1).getByRole("link").click();
  });

  await step("its approval completes it, and keeps the result", async () => {
    await press("Approve");
    await see("Transfer approved.");
    await status("Completed").waitFor();
    assert.equal(await button("Approve").count(), 0);
    assert.match(await region("Details").innerText(), /Payee\s+No match/);
  });

  await step("a rejected transfer has failed", async () => {
    await on.go(`transfers/${await transfer("Close match Ltd", 800)}`);
    await see("The account belongs to a similar name.");
    await press("Reject");
    await see("Transfer rejected.");
    await status("Failed").waitFor();
  });

  await step("refunds are marked in the list, approved and rejected on their page", async () => {
    await refund("No match Ltd", 1000);
    const id = await refund("Close match Ltd", 2000);
    await on.go("refunds");
    await on.rows("Refunds").nth(1).waitFor();
    assert.match(await on.rows("Refunds").nth(1).innerText(), /Pending\s*Payee: no match/);
    await on.go(`refunds/${id}`);
    await button("Approve the refund of 10.00 EUR").waitFor();
    await keepViews("payee-refunds", button("Reject the refund of 10.00 EUR"));
    await press("Approve the refund of 10.00 EUR");
    await see("Refund completed.");
    await press("Reject the refund of 20.00 EUR");
    await see("Refund failed: its amount can be refunded again.");
    await region("Refunds").getByText("Failed", { exact: true }).waitFor();
    assert.equal(await region("Refunds").getByText(/^Payee:/).count(), 0);
  });
});
