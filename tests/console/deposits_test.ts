/**
 * Payments that the payer sends in the console: the QR code, simulated transfers and a refund. And
 * one that the merchant collects.
 */

import assert from "node:assert/strict";
import { formatDay } from "../../apps/console/data/times.ts";
import { until } from "../support/common/until.ts";
import { consoleCase, PHONE } from "../support/console/console_case.ts";
import { look } from "../support/console/look.ts";
import { readQrCode } from "../support/console/qr_reader.ts";

const WALLET = "0x000000000000000000000000000000000000dEaD";

consoleCase("payments that the payer sends", async (step, { enter, send }) => {
  const on = await enter("#/payments/new");
  const { page, status, press, see, submit, choose, field, fault, heading } = on;
  const paymentNow = () => send("GET", `payments/${page.url().split("/").at(-1)}`);
  /** Simulates a transfer of the payer. */
  const transfer = async (currency: string, amount: string, text?: string) => {
    await submit({ [`Amount in ${currency}`]: amount }, "Simulate the transfer");
    if (text !== undefined) await see(`${text} ${currency} sent.`);
  };

  await step("the form creates it without an instrument", async () => {
    await choose("Own address");
    assert.equal(await field("Currency").inputValue(), "USDC");
    await submit({ Amount: "12.5" }, "Create payment", "Waiting for the payer");
    const { amount_minor, amount_received } = await paymentNow();
    assert.deepEqual([amount_minor, amount_received], [12_500_000, 0]);
  });
  const readsCode = (kind: string, member: "uri" | "epc_qr") =>
    step(`a reader reads the QR code of a ${kind} on a phone`, async () => {
      await page.setViewportSize(PHONE);
      assert.equal(await readQrCode(page), (await paymentNow()).next_action[member]);
      assert.deepEqual(await look(page, kind), []);
    });
  await readsCode("deposit", "uri");
  await step("a part of the money makes it processing", async () => {
    const amount = field("Amount in USDC");
    assert.equal(await amount.inputValue(), "12.500000");
    await transfer("USDC", "0");
    await fault().waitFor();
    await transfer("USDC", "5", "5.000000");
    await status("Processing").waitFor();
    assert.equal(await amount.inputValue(), "7.500000");
    const { next_action: { uri } } = await paymentNow();
    assert.equal(await readQrCode(page), uri.replace("uint256=12500000", "uint256=7500000"));
  });
  await step("an advance makes the whole amount final", async () => {
    await press("Completed The whole amount is final");
    await status("Completed").waitFor();
    assert.equal(await page.locator(".qr").count(), 0);
    assert.equal((await paymentNow()).amount_received, 12_500_000);
  });
  await step("late money becomes a part of the unapplied balance", async () => {
    await transfer("USDC", "0.25", "0.250000");
    await on.region("Ledger").getByText("0.250000").first().waitFor();
    const { balances } = await send("GET", "balance");
    const unapplied = balances.find(({ account }: { account: string }) => account === "unapplied");
    assert.equal(unapplied?.amount_minor, 250_000);
    assert.equal((await paymentNow()).status, "completed");
  });
  await step("a refund needs the wallet of the payer", async () => {
    await press("Refund…", "Refund");
    await fault().waitFor();
    await submit({ "The payer’s wallet": WALLET }, "Refund");
    await status("Refunded").waitFor();
  });

  await step("the form creates a payment by bank transfer", async () => {
    await on.go("payments/new");
    await choose("Bank transfer");
    assert.equal(await field("Currency").inputValue(), "EUR");
    assert.equal(await field("Settlement").count(), 0);
    await on.fill({ Amount: "12.34" });
    await press("Create payment");
    await see("Waiting for the payer");
    const { next_action: { reference, iban, bic } } = await paymentNow();
    for (const text of [reference, iban, bic]) await on.button(`Copy ${text}`).waitFor();
  });
  await readsCode("transfer", "epc_qr");
  await step("the bank books a part, and the QR code asks for the rest", async () => {
    await transfer("EUR", "5", "5.00");
    await status("Pending").waitFor();
    const { next_action: { epc_qr } } = await paymentNow();
    const name = `QR code of ${epc_qr.replace("EUR12.34", "EUR7.34")}`;
    await until(name, async () => await page.locator(".qr").getAttribute("aria-label") === name);
  });
  await step("the bank books the rest", async () => {
    await press("Completed The bank books the missing amount");
    await status("Completed").waitFor();
    assert.equal((await paymentNow()).amount_received, 1234);
  });

  await step("the form creates a collection under a mandate", async () => {
    await on.go("payments/new");
    await choose("IBAN");
    assert.equal(await on.radio(/MD01/).count(), 0);
    await submit({ Amount: "20", Mandate: "two  spaces" }, "Create payment");
    await on.radio(/MD01/).waitFor();
    await fault("mandate.id").waitFor();
    await submit({ Mandate: "M-2026-17" }, "Create payment");
    await heading("20.00 EUR").waitFor();
    const { status: now, method } = await paymentNow();
    assert.deepEqual([now, method.mandate.id], ["processing", "M-2026-17"]);
    await see(method.mandate.id, formatDay(method.due_on));
  });
  await step("a mandate is saved, and collected without the payer", async () => {
    await on.go("payments/new");
    await choose("IBAN", /^SEPA, approved/);
    const saved = { Amount: "0", "Your id of the customer": "user-7" };
    await submit({ ...saved, "Save for later payments": "off_session" }, "Create payment");
    await status("Completed").waitFor();
    const { method } = await paymentNow();
    await on.link(/^ins_/).click();
    await on.region("Details").getByText(method.mandate.id).waitFor();
    await press("Charge…");
    await submit({ Amount: "15" }, "Charge", "Payment created: processing.", "Not present");
    assert.equal((await paymentNow()).method.mandate.id, method.mandate.id);
  });
});
