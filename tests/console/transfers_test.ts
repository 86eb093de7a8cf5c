/** Transfers in the console: created, listed, moved and cancelled, with their records. */

import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import { consoleCase } from "../support/console/console_case.ts";

const button = (page: Page, name: string) => page.getByRole("button", { name, exact: true });
const region = (page: Page, name: string) => page.getByRole("region", { name, exact: true });
const status = (page: Page) => page.locator(".under-title .status");

consoleCase("a transfer from its creation to its ledger", async (step, { start, enter }) => {
  const { page } = await enter("#/transfers");
  const go = (place: string) => page.goto(`${page.url().split("#")[0]}#/${place}`);
  const create = async (amount: string, settlement = "") => {
    await go("transfers/new");
    await page.getByLabel("Amount", { exact: true }).fill(amount);
    await page.getByLabel("Settlement").selectOption(settlement);
    await button(page, "Create transfer").click();
  };

  await step("without money the API refuses it, and the form says so", async () => {
    await page.getByText("No transfers yet").waitFor();
    await page.getByRole("link", { name: "Create the first transfer" }).click();
    await page.getByText("0.00 EUR available").waitFor();
    await button(page, "Create transfer").click();
    await page.getByText("balance_insufficient").waitFor();
  });

  await step("a transfer to a bank account is completed", async () => {
    await start.call("POST", "/api-v1-payments/v1/webhook_endpoints", { delivery: "inbox" });
    const payment = { amount_minor: 10_000, currency: "EUR", outcome: "success" };
    await start.call("POST", "/api-v1-sandbox/payments", payment);
    await page.getByText("100.00 EUR available").waitFor();
    await page.getByLabel("Description").fill("Payout of May");
    await button(page, "Create transfer").click();
    await page.getByRole("heading", { name: "10.00 EUR" }).waitFor();
    await page.getByText("Transfer created: completed.").waitFor();
    assert.equal(await status(page).innerText(), "Completed");
  });

  await step("its page has its own events, ledger entries and deliveries", async () => {
    const events = region(page, "Timeline").getByRole("listitem");
    await events.nth(1).waitFor();
    assert.deepEqual(await events.locator("summary code").allInnerTexts(), [
      "transfer.completed",
      "transfer.created",
    ]);
    const ledger = region(page, "Ledger").getByRole("table");
    await ledger.nth(1).waitFor();
    assert.match(
      (await ledger.allInnerTexts()).join(" ").replaceAll(/\s+/g, " "),
      /^Transfer completed.* In transit 10.00 External 10.00 .* Transfer.* Available 10.00 In transit 10.00/,
    );
    const deliveries = region(page, "Webhook deliveries").getByRole("listitem");
    await deliveries.nth(1).waitFor();
    assert.equal(await deliveries.count(), 2);
    // Its bank can still return it.
    await region(page, "Advance").getByRole("button", { name: /^Failed/ }).waitFor();
  });

  await step("its bank details are deleted, and its last four characters stay", async () => {
    await button(page, "Delete bank details…").click();
    await button(page, "Delete bank details").click();
    await page.getByText("Bank details deleted.").waitFor();
    await region(page, "Details").getByText("3000").waitFor();
  });

  await step("a manual transfer waits, fails, and its money comes back", async () => {
    await create("20.00", "manual");
    await page.getByRole("heading", { name: "20.00 EUR" }).waitFor();
    assert.equal(await status(page).innerText(), "Pending");
    await region(page, "Advance").getByRole("button", { name: /^Failed/ }).click();
    await page.getByText("bank_return").waitFor();
    assert.equal(await status(page).innerText(), "Failed");
    assert.equal(await button(page, "Cancel transfer…").count(), 0);
  });

  await step("another one is cancelled", async () => {
    await create("30.00", "manual");
    await page.getByRole("heading", { name: "30.00 EUR" }).waitFor();
    await button(page, "Cancel transfer…").click();
    await button(page, "Cancel transfer").click();
    await page.getByText("Transfer cancelled.").waitFor();
    await page.locator(".under-title").getByText("Cancelled").waitFor();
  });

  await step("the list shows all of them, and a filter shows one", async () => {
    await page.getByRole("link", { name: "Transfers", exact: true }).first().click();
    const rows = page.getByRole("table", { name: "Transfers" }).locator("tbody tr");
    await rows.nth(2).waitFor();
    assert.equal(await rows.count(), 3);
    assert.match(await rows.nth(2).innerText(), /10\.00 EUR\s+Completed\s+IBAN DE ···· 3000/);
    await page.getByLabel("Status").selectOption("failed");
    await page.getByText("30.00 EUR").waitFor({ state: "detached" });
    assert.equal(await rows.count(), 1);
    await page.getByRole("link", { name: "20.00 EUR" }).click();
    await page.getByText("bank_return").waitFor();
  });

  await step("a wallet gets stablecoins", async () => {
    const payment = {
      amount_minor: 2_000_000,
      currency: "USDC",
      wallet: "0x000000000000000000000000000000000000dEaD",
    };
    await start.call("POST", "/api-v1-sandbox/payments", payment);
    await go("transfers/new");
    await page.getByRole("radio", { name: "Wallet", exact: true }).check();
    assert.equal(await page.getByLabel("Currency").inputValue(), "USDC");
    await page.getByLabel("Amount", { exact: true }).fill("1.5");
    await button(page, "Create transfer").click();
    await page.getByRole("heading", { name: "1.500000 USDC" }).waitFor();
    await region(page, "Details").getByText("0x000000000000000000000000000000000000dEaD")
      .waitFor();
  });

  await step("an event of a transfer links to it", async () => {
    await go("events?type=transfer.cancelled");
    await page.locator(".timeline code").first().click();
    await page.getByRole("link", { name: /^tr_…/ }).click();
    await page.getByRole("heading", { name: "30.00 EUR" }).waitFor();
  });

  await step("the balance explains its accounts, and adds up to zero", async () => {
    await go("balance");
    const accounts = page.getByRole("table", { name: "Accounts in EUR" });
    await accounts.getByText("Your money").waitFor();
    await page.getByText("its credits less its debits").waitFor();
    const rows = accounts.locator("tbody tr");
    for (const row of await rows.all()) assert.ok(await row.locator("th p").innerText());
    const balances = await rows.locator("td:last-child").allInnerTexts();
    const minor = balances.map((text) => Number(text.replaceAll(/[,.]/g, "").replace("−", "-")));
    assert.equal(minor.reduce((sum, amount) => sum + amount, 0), 0);
    assert.ok(minor.some((amount) => amount < 0), balances.join());
  });
});
