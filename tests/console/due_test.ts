/** "What comes next": equal kinds are one line that leads to its items. */

import assert from "node:assert/strict";
import { consoleCase } from "../support/console/console_case.ts";

const PAYMENTS = "/api-v1-payments/v1/payments";

consoleCase("what comes next is grouped by kind", async (step, { enter, start }) => {
  const make = async (body: Record<string, unknown>, times: number) => {
    for (let i = 0; i < times; i++) {
      await start.call("POST", PAYMENTS, { amount: 1_000 + i, currency: "EUR", ...body });
    }
  };
  await make({
    card: { number: "4000002500003155", exp_month: 12, exp_year: 2034, cvc: "123" },
  }, 12);
  await make({ card: { token: "pm_card_visa" }, capture: "manual" }, 3);
  await make({ outcome: "chargeback" }, 1);
  const { page } = await enter();
  const card = page.getByRole("region", { name: "What comes next" });
  const main = page.getByRole("main");

  await step("16 things are three lines, the earliest first", async () => {
    await card.getByText("12 of them").waitFor();
    const lines = await card.getByRole("listitem").locator(".record > span").allInnerTexts();
    assert.deepEqual(lines, [
      "Time to authenticate ends",
      "Authorization ends",
      "Lost without evidence",
    ]);
  });
  await step("several lead to their list", async () => {
    await card.getByRole("link", { name: "3 of them" }).click();
    await page.getByRole("heading", { name: "Payments", level: 1 }).waitFor();
    await page.waitForFunction(() =>
      // deno-lint-ignore no-explicit-any
      (globalThis as any).document.querySelectorAll("tbody tr").length === 3
    );
    assert.equal(await page.getByLabel("Status").inputValue(), "authorized");
  });
  await step("a single one leads to its resource", async () => {
    await page.goBack();
    await card.getByRole("listitem").filter({ hasText: "Lost without evidence" })
      .getByRole("link").click();
    await main.getByText("The payer disputes the payment").waitFor();
  });
  await step("the advance to a kind says what happens, and Enter confirms", async () => {
    await page.getByRole("link", { name: "Home", exact: true }).click();
    await card.getByRole("button", { name: "Advance the clock to: Authorization ends" }).click();
    const dialog = page.getByRole("dialog", { name: "Advance the clock?" });
    await dialog.getByText("12 × Time to authenticate ends").waitFor();
    await dialog.getByText(/^[1-3] × Authorization ends$/).waitFor();
    await dialog.getByRole("button", { name: "Advance", exact: true })
      .and(page.locator(":focus")).waitFor();
    await page.keyboard.press("Enter");
    await dialog.waitFor({ state: "detached" });
    await page.getByText(/^The clock shows .*1[3-5] payments ended/).waitFor();
  });
});
