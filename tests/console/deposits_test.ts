/**
 * Payments that the payer sends in the console: the QR code, simulated transfers and a refund. And
 * one that the merchant collects.
 */
/// <reference lib="dom" />

import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import decodeQR from "qr/decode.js";
import { until } from "../support/common/until.ts";
import { consoleCase, keepScreenshot, PHONE } from "../support/console/console_case.ts";

const WALLET = "0x000000000000000000000000000000000000dEaD";

consoleCase("payments that the payer sends", async (step, place) => {
  const { page } = await place.enter("#/payments/new");
  const status = (name: string) => page.locator(".under-title").getByText(name, { exact: true });
  const paymentNow = async () => {
    const id = page.url().split("/").at(-1);
    const { body } = await place.start.call("GET", `/api-v1-payments/v1/payments/${id}`);
    // deno-lint-ignore no-explicit-any
    return body as any;
  };

  await step("the form creates it without an instrument", async () => {
    await page.getByRole("radio", { name: "Own address" }).check();
    assert.equal(await page.getByLabel("Currency").inputValue(), "USDC");
    await page.getByLabel("Amount", { exact: true }).fill("12.5");
    await page.getByRole("button", { name: "Create payment" }).click();
    await page.getByRole("heading", { name: "Waiting for the payer" }).waitFor();
    const { amount_minor, amount_received } = await paymentNow();
    assert.deepEqual([amount_minor, amount_received], [12_500_000, 0]);
  });
  const desktop = page.viewportSize()!;
  const readOnEach = async (kind: string, member: "uri" | "epc_qr", devices: string[]) => {
    for (const name of devices) {
      await step(`a reader reads the QR code of a ${kind} on a ${name}`, async () => {
        await page.setViewportSize(name === "phone" ? PHONE : desktop);
        const { next_action } = await paymentNow();
        assert.equal(await readQrCode(page), next_action[member]);
        await keepScreenshot(page, `${kind}-${name}`);
        const { width, scroll } = await page.evaluate(() => {
          const { clientWidth, scrollWidth } = document.documentElement;
          return { width: clientWidth, scroll: scrollWidth };
        });
        assert.ok(scroll <= width, `${scroll} in ${width} px`);
      });
    }
  };
  await readOnEach("deposit", "uri", ["desktop", "phone"]);
  await step("a part of the money makes it processing", async () => {
    const form = page.getByRole("form", { name: "Simulate a transfer" });
    const amount = form.getByLabel("Amount in USDC");
    assert.equal(await amount.inputValue(), "12.500000");
    await amount.fill("0");
    await form.getByRole("button").click();
    await form.locator(".fault").waitFor();
    await amount.fill("5");
    await form.getByRole("button").click();
    await status("Processing").waitFor();
    await page.getByText("5.000000 USDC sent.").waitFor();
    assert.equal(await amount.inputValue(), "7.500000");
    const { next_action: { uri } } = await paymentNow();
    assert.equal(await readQrCode(page), uri.replace("uint256=12500000", "uint256=7500000"));
  });
  await step("an advance makes the whole amount final", async () => {
    await page.getByRole("button", { name: "Completed The whole amount is final" }).click();
    await status("Completed").waitFor();
    assert.equal(await page.locator(".qr").count(), 0);
    assert.equal((await paymentNow()).amount_received, 12_500_000);
  });
  await step("late money becomes a part of the unapplied balance", async () => {
    const form = page.getByRole("form", { name: "Simulate a transfer" });
    await form.getByLabel("Amount in USDC").fill("0.25");
    await form.getByRole("button").click();
    await page.getByText("0.250000 USDC sent.").waitFor();
    await page.getByRole("region", { name: "Ledger" }).getByText("0.250000").first().waitFor();
    const { body } = await place.start.call("GET", "/api-v1-payments/v1/balance");
    const { balances } = body as { balances: { account: string; amount_minor: number }[] };
    const unapplied = balances.find(({ account }) => account === "unapplied");
    assert.equal(unapplied?.amount_minor, 250_000);
    assert.equal((await paymentNow()).status, "completed");
    await keepScreenshot(page, "deposit-late");
  });
  await step("a refund needs the wallet of the payer", async () => {
    await page.getByRole("button", { name: "Refund…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("button", { name: "Refund", exact: true }).click();
    await dialog.locator(".fault").waitFor();
    await dialog.getByLabel("The payer’s wallet").fill(WALLET);
    await dialog.getByRole("button", { name: "Refund", exact: true }).click();
    await status("Refunded").waitFor();
  });

  await step("the form creates a payment by bank transfer", async () => {
    await page.setViewportSize(desktop);
    await page.evaluate(() => location.hash = "#/payments/new");
    await page.getByRole("radio", { name: "Bank transfer" }).check();
    assert.equal(await page.getByLabel("Currency").inputValue(), "EUR");
    assert.equal(await page.getByLabel("Settlement").count(), 0);
    await page.getByLabel("Amount", { exact: true }).fill("12.34");
    await keepScreenshot(page, "transfer-form");
    await page.getByRole("button", { name: "Create payment" }).click();
    await page.getByRole("heading", { name: "Waiting for the payer" }).waitFor();
    const { next_action: { reference, iban, bic } } = await paymentNow();
    for (const text of [reference, iban, bic]) {
      await page.getByRole("button", { name: `Copy ${text}` }).waitFor();
    }
    await keepScreenshot(page, "transfer-desktop");
  });
  await readOnEach("transfer", "epc_qr", ["phone"]);
  await step("the bank books a part, and the QR code asks for the rest", async () => {
    const form = page.getByRole("form", { name: "Simulate a transfer" });
    await form.getByLabel("Amount in EUR").fill("5");
    await form.getByRole("button").click();
    await page.getByText("5.00 EUR sent.").waitFor();
    await status("Pending").waitFor();
    const { next_action: { epc_qr } } = await paymentNow();
    const name = `QR code of ${epc_qr.replace("EUR12.34", "EUR7.34")}`;
    await until(name, async () => await page.locator(".qr").getAttribute("aria-label") === name);
  });
  await step("the bank books the rest", async () => {
    await page.getByRole("button", { name: "Completed The bank books the missing amount" }).click();
    await status("Completed").waitFor();
    assert.equal((await paymentNow()).amount_received, 1234);
  });

  await step("the form creates a collection under a mandate", async () => {
    await page.setViewportSize(desktop);
    await page.evaluate(() => location.hash = "#/payments/new");
    await page.getByRole("radio", { name: "IBAN" }).check();
    await page.getByLabel("Amount", { exact: true }).fill("20");
    await page.getByLabel("Mandate").fill("two  spaces");
    await page.getByRole("button", { name: "Create payment" }).click();
    await page.locator(".fault").filter({ hasText: "mandate.id" }).waitFor();
    await keepScreenshot(page, "collection-form");
    await page.getByLabel("Mandate").fill("M-2026-17");
    await page.getByRole("button", { name: "Create payment" }).click();
    await page.getByRole("heading", { name: "20.00 EUR" }).waitFor();
    const { status: now, method } = await paymentNow();
    assert.deepEqual([now, method.mandate.id], ["processing", "M-2026-17"]);
    await page.getByText(method.mandate.id, { exact: true }).first().waitFor();
    await page.getByText(method.due_on).first().waitFor();
    await keepScreenshot(page, "collection-desktop");
    await page.setViewportSize(PHONE);
    await keepScreenshot(page, "collection-phone");
  });
});

/** Reads the QR code from a picture of the page, as a wallet does. */
async function readQrCode(page: Page): Promise<string> {
  const picture = (await page.locator(".qr").screenshot()).toString("base64");
  // The policy of the console allows no picture from text, so an empty page decodes this one.
  const reader = await page.context().newPage();
  const image = await reader.evaluate(async (picture) => {
    const img = new Image();
    img.src = `data:image/png;base64,${picture}`;
    await img.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [img.width, img.height];
    const context = canvas.getContext("2d")!;
    context.drawImage(img, 0, 0);
    const { data } = context.getImageData(0, 0, img.width, img.height);
    return { width: img.width, height: img.height, data: [...data] };
  }, picture);
  await reader.close();
  return decodeQR({ ...image, data: new Uint8ClampedArray(image.data) });
}
