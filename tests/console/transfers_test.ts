/**
 * Transfers in the console: created, listed, moved and cancelled, with their records. And payouts
 * whose payee the bank has not matched: marked, approved and rejected.
 */

import assert from "node:assert/strict";
import { consoleCase } from "../support/console/console_case.ts";

const IBAN = "FR1420041010050500013M02606";
const WALLET = "0x000000000000000000000000000000000000dEaD";

consoleCase("a transfer from its creation to its ledger", async (step, { make, send, enter }) => {
  const on = await enter("#/transfers");
  const { page, button, link, region, heading, status, press, see, submit } = on;
  const pay = (amount_minor: number, more: object) =>
    make("/api-v1-sandbox/payments", { amount_minor, ...more });
  const fail = () => region("Advance").getByRole("button", { name: /^Failed/ });

  await step("without money the API refuses it, and the form says so", async () => {
    await see("No transfers yet");
    await link("Create the first transfer").click();
    await see("0.00 EUR available");
    await press("Create transfer");
    await see("balance_insufficient");
  });

  await step("a transfer to a bank account is completed", async () => {
    await make("webhook_endpoints", { delivery: "inbox" });
    await pay(10_000, { currency: "EUR", outcome: "success" });
    await see("100.00 EUR available");
    await submit({ Description: "Payout of May" }, "Create transfer");
    await heading("10.00 EUR").waitFor();
    await see("Transfer created: completed.");
    await status("Completed").waitFor();
  });

  await step("its page has its own events, ledger entries and deliveries", async () => {
    const events = region("Timeline").getByRole("listitem");
    await events.nth(1).waitFor();
    assert.deepEqual(
      await events.locator("summary code").allInnerTexts(),
      ["transfer.completed", "transfer.created"],
    );
    const ledger = region("Ledger").getByRole("table");
    await ledger.nth(1).waitFor();
    assert.match(
      (await ledger.allInnerTexts()).join(" ").replaceAll(/\s+/g, " "),
      /^Transfer completed.* In transit 10.00 External 10.00 .* Transfer.* Available 10.00 In transit 10.00/,
    );
    const deliveries = region("Webhook deliveries").locator("tbody tr");
    await deliveries.nth(1).waitFor();
    assert.equal(await deliveries.count(), 2);
    // Its bank can still return it.
    await fail().waitFor();
  });

  await step("its bank details are deleted, and its last four characters stay", async () => {
    await press("Delete bank details…", "Delete bank details");
    await see("Bank details deleted.");
    await region("Details").getByText("3000").waitFor();
  });

  await step("a manual transfer waits, fails, and its money comes back", async () => {
    await on.go("transfers/new");
    await submit({ Amount: "20.00", Settlement: "manual" }, "Create transfer");
    await status("Pending").waitFor();
    await fail().click();
    await see("bank_return");
    await status("Failed").waitFor();
    assert.equal(await button("Cancel transfer…").count(), 0);
  });

  await step("another one is cancelled", async () => {
    await on.go("transfers/new");
    await submit({ Amount: "30.00", Settlement: "manual" }, "Create transfer");
    await heading("30.00 EUR").waitFor();
    await press("Cancel transfer…", "Cancel transfer");
    await see("Transfer cancelled.");
  });

  await step("the list shows all of them, and a filter shows one", async () => {
    await link("Transfers").first().click();
    await on.showsRows("Transfers", 3);
    assert.match(
      await on.rows("Transfers").nth(2).innerText(),
      /10\.00 EUR\s+Completed\s+IBAN DE ···· 3000/,
    );
    await on.field("Status").selectOption("failed");
    await on.showsRows("Transfers", 1);
    await link("20.00 EUR").click();
    await see("bank_return");
  });

  await step("a wallet gets stablecoins", async () => {
    await pay(2_000_000, { currency: "USDC", wallet: WALLET });
    await on.go("transfers/new");
    await on.choose("Wallet");
    assert.equal(await on.field("Currency").inputValue(), "USDC");
    await on.fill({ Asset: "USDT" });
    assert.equal((await on.preview()).destination.wallet.asset, "USDT");
    await submit({ Amount: "1.5", Asset: "" }, "Create transfer");
    await heading("1.500000 USDC").waitFor();
    await region("Details").getByText(WALLET).waitFor();
  });

  await step("an event of a transfer links to it", async () => {
    await on.go("events?type=transfer.cancelled");
    await page.locator(".timeline code").first().click();
    await link(/^tr_/).click();
    await heading("30.00 EUR").waitFor();
  });

  await step("the balance explains its accounts, and adds up to zero", async () => {
    await on.go("balance");
    await see("Your money", "its credits less its debits");
    const { balances: shown } = await send("GET", "balance");
    const available = shown.find((it: { currency: string; account: string }) =>
      it.currency === "EUR" && it.account === "available"
    );
    const text = await heading(/ EUR$/).innerText();
    assert.equal(Number(text.replace(/\D/g, "")), available.amount_minor);
    const rows = on.rows("Accounts in EUR");
    for (const row of await rows.all()) assert.ok(await row.locator("th p").innerText());
    const balances = await rows.locator("td:last-child").allInnerTexts();
    const minor = balances.map((text) => Number(text.replaceAll(/[,.]/g, "").replace("−", "-")));
    assert.equal(minor.reduce((sum, amount) => sum + amount, 0), 0);
    assert.ok(minor.some((amount) => amount < 0), balances.join());
  });

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
  await step("a transfer from the form waits, and its page says why", async () => {
    await on.go("transfers/new");
    const fields = { Amount: "5.00", "Account holder": "No match Ltd" };
    await on.submit(fields, "Create transfer", "The account belongs to another name.");
    await on.heading("Payee: no match").waitFor();
  });

  await step("the list marks it, and not one whose payee matches", async () => {
    await transfer("Match Ltd", 700);
    await on.link("Transfers").first().click();
    const rows = on.rows("Transfers");
    await rows.nth(1).waitFor();
    assert.match(await rows.nth(1).innerText(), /Pending\s*Payee: no match/);
    assert.doesNotMatch(await rows.nth(0).innerText(), /Payee/);
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
    await press("Approve the refund of 10.00 EUR");
    await see("Refund completed.");
    // The item becomes lower then, and moves the buttons of the next one.
    await button("Approve the refund of 10.00 EUR").waitFor({ state: "detached" });
    await press("Reject the refund of 20.00 EUR");
    await see("Refund failed: its amount can be refunded again.");
    await region("Refunds").getByText("Failed", { exact: true }).waitFor();
    assert.equal(await region("Refunds").getByText(/^Payee:/).count(), 0);
  });
});
