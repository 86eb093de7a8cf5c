/** Decisions that a payment waits for: its capture, its pending refunds and its dispute. */

import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import { consoleCase } from "../support/console/console_case.ts";

const button = (page: Page, name: string) => page.getByRole("button", { name, exact: true });
const section = (page: Page, name: string) => page.getByRole("region", { name, exact: true });
const status = (page: Page) => page.locator(".under-title .status");
const said = (page: Page) => page.locator("[aria-live] .notice");

/** Waits until the payment has a status. */
async function hasStatus(page: Page, name: string): Promise<void> {
  await status(page).getByText(name, { exact: true }).waitFor();
}

consoleCase("captures, pending refunds and disputes are decided", async (step, place) => {
  const { page } = await place.enter("#/payments/new");
  const base = page.url().replace(/#.*/, "");
  const newForm = async () => {
    await page.goto(`${base}#/payments`);
    await page.getByRole("heading", { name: "Payments" }).waitFor();
    await page.goto(`${base}#/payments/new`);
  };
  const titles = () =>
    section(page, "Timeline").locator(".event-title").allInnerTexts()
      .then((texts) => texts.map((text) => text.trim()));
  /** Waits until the timeline begins with these titles, newest first. */
  const hasTitles = async (...expected: string[]) => {
    await section(page, "Timeline").locator(".event-title").first()
      .filter({ hasText: expected[0]! }).waitFor();
    assert.deepEqual((await titles()).slice(0, expected.length), expected);
  };

  await step("a token with a manual capture and a return URL: authorized", async () => {
    await page.getByRole("radio", { name: "Card token", exact: true }).check();
    await page.getByRole("radio", { name: /^Mastercard/ }).check();
    assert.equal(
      await page.getByLabel("Token", { exact: true }).inputValue(),
      "pm_card_mastercard",
    );
    await page.getByLabel("Capture", { exact: true }).selectOption("manual");
    await page.getByLabel("Settlement", { exact: true }).selectOption("manual");
    await page.getByLabel(/^Return URL/).fill("https://shop.example/return");
    const preview = JSON.parse(await section(page, "Body of the request").innerText());
    assert.deepEqual(preview.card, { token: "pm_card_mastercard" });
    await button(page, "Create payment").click();
    await hasStatus(page, "Authorized");
    const details = await section(page, "Details").innerText();
    assert.match(details, /Capture\s+Manual\s+Capture before\s+\d+ \w+/);
    assert.match(details, /Settlement\s+Manual\s+Return URL\s+https:\/\/shop\.example\/return/);
    await hasTitles("payment.authorized", "payment.created");
    await section(page, "Ledger").getByText("No money has moved").waitFor();
  });

  await step("more than the authorized amount: an error at the amount", async () => {
    await button(page, "Capture…").click();
    const dialog = page.getByRole("dialog", { name: "Capture" });
    assert.equal(await dialog.getByLabel("Amount in EUR").inputValue(), "19.99");
    await dialog.getByLabel("Amount in EUR").fill("20.00");
    await dialog.getByRole("button", { name: "Capture", exact: true }).click();
    await dialog.locator(".fault").getByText("invalid_parameter").waitFor();
  });

  await step("a capture of a part releases the rest", async () => {
    const dialog = page.getByRole("dialog", { name: "Capture" });
    await dialog.getByLabel("Amount in EUR").fill("15.00");
    await dialog.getByRole("button", { name: "Capture", exact: true }).click();
    await said(page).getByText("15.00 EUR captured.").waitFor();
    await hasStatus(page, "Completed");
    assert.match(await section(page, "Details").innerText(), /Captured\s+15\.00 EUR/);
    assert.equal(await page.getByText("Capture before").count(), 0);
    assert.equal(await button(page, "Cancel payment…").count(), 0);
  });

  const refundDialog = page.getByRole("dialog", { name: "Refund" });
  const refund = async (amount: string) => {
    await button(page, "Refund…").click();
    await refundDialog.getByLabel("Amount in EUR").fill(amount);
    await refundDialog.getByRole("button", { name: "Refund", exact: true }).click();
    await refundDialog.waitFor({ state: "detached" });
  };

  await step("two refunds wait, and hold their amounts", async () => {
    await refund("5.00");
    await said(page).getByText("The refund of 5.00 EUR is pending.").waitFor();
    await button(page, "Complete the refund of 5.00 EUR").waitFor();
    assert.match(await section(page, "Details").innerText(), /Refund pending\s+5\.00 EUR/);
    await button(page, "Refund…").click();
    await refundDialog.getByText("10.00 EUR can be refunded. Pending refunds hold 5.00 EUR.")
      .waitFor();
    await page.keyboard.press("Escape");
    await refund("");
    await button(page, "Complete the refund of 10.00 EUR").waitFor();
    await section(page, "Advance").getByText("Pending refunds hold the rest").waitFor();
    assert.equal(await button(page, "Refund…").count(), 0);
    await hasStatus(page, "Completed");
  });

  await step("one refund is completed, the other one fails", async () => {
    await button(page, "Complete the refund of 5.00 EUR").click();
    await said(page).getByText("Refund completed.").waitFor();
    await hasStatus(page, "Partially refunded");
    await hasTitles(
      "payment.partially_refunded",
      "refund.completed",
      "refund.created",
      "refund.created",
    );
    await button(page, "Fail the refund of 10.00 EUR").click();
    await said(page).getByText("Refund failed: its amount can be refunded again.").waitFor();
    await section(page, "Refunds").getByText("processing_failed").waitFor();
    assert.equal(
      await section(page, "Refunds").getByRole("button", { name: /refund of/ }).count(),
      0,
    );
    await hasTitles("refund.failed");
    await button(page, "Refund…").waitFor();
    const details = await section(page, "Details").innerText();
    assert.match(details, /Refunded\s+5\.00 EUR/);
    assert.doesNotMatch(details, /Refund pending/);
  });

  await step("the payer disputes the rest, and the merchant wins", async () => {
    await section(page, "Advance").getByRole("button", { name: /^Chargeback/ }).click();
    await page.getByRole("heading", { name: "The payer disputes the payment" }).waitFor();
    assert.match(await section(page, "Details").innerText(), /Disputed\s+10\.00 EUR/);
    await section(page, "Advance").getByText("The merchant wins the dispute").waitFor();
    await button(page, "Win the dispute").click();
    await said(page).getByText("Dispute won.").waitFor();
    await hasStatus(page, "Partially refunded");
    await hasTitles(
      "payment.partially_refunded Chargeback reversed",
      "dispute.won",
      "payment.chargeback Disputed by the payer",
      "dispute.created",
    );
    await page.getByRole("table", { name: /^Chargeback reversed/ }).waitFor();
    assert.equal(await page.getByText("Disputed", { exact: true }).count(), 0);
    await section(page, "Disputes").getByText("Won", { exact: true }).waitFor();
  });

  await step("evidence is refused, reviewed, and the dispute accepted", async () => {
    await section(page, "Advance").getByRole("button", { name: /^Chargeback/ }).click();
    const disputes = section(page, "Disputes");
    await disputes.getByText("Needs response", { exact: true }).waitFor();
    await disputes.getByText(/Without evidence the dispute is lost/).waitFor();
    await button(page, "Submit evidence").click();
    await disputes.locator(".fault").getByText("invalid_parameter").waitFor();
    await disputes.getByLabel("Evidence").last().fill("A signed receipt");
    await button(page, "Submit evidence").click();
    await said(page).getByText("Evidence submitted: the dispute is under review.").waitFor();
    await disputes.getByText("Evidence: A signed receipt").waitFor();
    assert.equal(await button(page, "Submit evidence").count(), 0);
    await button(page, "Accept the dispute…").click();
    await button(page, "Accept the dispute").click();
    await said(page).getByText("Dispute accepted: it is lost.").waitFor();
    await disputes.getByText("Lost", { exact: true }).waitFor();
    await hasTitles("dispute.lost", "dispute.updated", "payment.chargeback Disputed by the payer");
    await hasStatus(page, "Chargeback");
  });

  await step(
    "the test card is disputed at once, and winning evidence brings the money back",
    async () => {
      await newForm();
      await page.getByRole("radio", { name: /···· 0259/ }).check();
      await button(page, "Create payment").click();
      await hasStatus(page, "Chargeback");
      await section(page, "Disputes").getByText("Fraudulent", { exact: true }).waitFor();
      await page.getByLabel("Evidence").last().fill("winning_evidence");
      await button(page, "Submit evidence").click();
      await said(page).getByText("Evidence submitted: the dispute is won.").waitFor();
      await hasStatus(page, "Completed");
    },
  );

  await step("3-D Secure leads to an authorization, and a cancel releases it", async () => {
    await newForm();
    await page.getByRole("radio", { name: /···· 3155/ }).check();
    await page.getByLabel("Capture", { exact: true }).selectOption("manual");
    await button(page, "Create payment").click();
    await button(page, "Authenticate").click();
    await said(page).getByText("Authenticated: the payment is authorized.").waitFor();
    await hasStatus(page, "Authorized");
    await button(page, "Cancel payment…").click();
    await button(page, "Cancel payment").click();
    await hasStatus(page, "Cancelled");
    assert.equal(await button(page, "Capture…").count(), 0);
  });

  await step("an IBAN has no capture: the form does not send it", async () => {
    await newForm();
    await page.getByLabel("Capture", { exact: true }).selectOption("manual");
    await page.getByRole("radio", { name: "IBAN", exact: true }).check();
    assert.equal(await page.getByLabel("Capture", { exact: true }).count(), 0);
    const preview = JSON.parse(await section(page, "Body of the request").innerText());
    assert.equal(preview.capture, undefined);
    await button(page, "Create payment").click();
    await hasStatus(page, "Completed");
  });

  await step("the list shows authorized payments only, with a filter", async () => {
    await newForm();
    await page.getByLabel("Capture", { exact: true }).selectOption("manual");
    await button(page, "Create payment").click();
    await hasStatus(page, "Authorized");
    await page.goto(`${base}#/payments`);
    await page.getByLabel("Status").selectOption("authorized");
    await page.waitForFunction(() =>
      // deno-lint-ignore no-explicit-any
      (globalThis as any).document.querySelectorAll("tbody tr").length === 1
    );
    assert.match(await page.locator("tbody tr").innerText(), /Authorized/);
  });
});
