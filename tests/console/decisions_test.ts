/** Decisions that a payment waits for: its capture, its pending refunds and its dispute. */

import assert from "node:assert/strict";
import { consoleCase } from "../support/console/console_case.ts";

const BACK = "https://shop.example/return";

consoleCase("captures, pending refunds and disputes are decided", async (step, place) => {
  const on = await place.enter("#/payments/new");
  const { button, region, status, said, press, submit, see, choose } = on;
  const details = () => region("Details").innerText();
  const chargeback = () => region("Advance").getByRole("button", { name: /^Chargeback/ }).click();
  /** Waits until the timeline begins with these titles, newest first. */
  const hasTitles = async (...expected: string[]) => {
    const titles = region("Timeline").locator(".event-title");
    await titles.first().filter({ hasText: expected[0]! }).waitFor();
    const texts = (await titles.allInnerTexts()).map((text) => text.trim());
    assert.deepEqual(texts.slice(0, expected.length), expected);
  };

  await step("a token with a manual capture and a return URL: authorized", async () => {
    await choose("Card token", /^Mastercard/);
    assert.equal(await on.field("Token").inputValue(), "pm_card_mastercard");
    await on.fill({ Capture: "manual", Settlement: "manual", "Return URL": BACK });
    assert.deepEqual((await on.preview()).card, { token: "pm_card_mastercard" });
    await press("Create payment");
    await status("Authorized").waitFor();
    assert.match(await details(), /Capture\s+Manual\s+Capture before\s+\d+ \w+/);
    assert.match(await details(), /Settlement\s+Manual\s+Return URL\s+https:.*\/return/);
    await hasTitles("payment.authorized", "payment.created");
    await region("Ledger").getByText("No money has moved").waitFor();
  });

  await step("more than the authorized amount: an error; a part releases the rest", async () => {
    await press("Capture…");
    assert.equal(await on.field("Amount in EUR").inputValue(), "19.99");
    await submit({ "Amount in EUR": "20.00" }, "Capture");
    await on.fault("invalid_parameter").waitFor();
    await submit({ "Amount in EUR": "15.00" }, "Capture");
    await said("15.00 EUR captured.").waitFor();
    await status("Completed").waitFor();
    assert.match(await details(), /Captured\s+15\.00 EUR/);
    assert.equal(await on.page.getByText("Capture before").count(), 0);
    assert.equal(await button("Cancel payment…").count(), 0);
  });

  await step("two refunds wait, and hold their amounts", async () => {
    await press("Refund…");
    await submit({ "Amount in EUR": "5.00" }, "Refund");
    await said("The refund of 5.00 EUR is pending.").waitFor();
    await button("Complete the refund of 5.00 EUR").waitFor();
    assert.match(await details(), /Refund pending\s+5\.00 EUR/);
    await press("Refund…");
    await see("10.00 EUR can be refunded. Pending refunds hold 5.00 EUR.");
    await submit({ "Amount in EUR": "" }, "Refund");
    await button("Complete the refund of 10.00 EUR").waitFor();
    await region("Advance").getByText("Pending refunds hold the rest").waitFor();
    assert.equal(await button("Refund…").count(), 0);
    await status("Completed").waitFor();
  });

  await step("one refund is completed, the other one fails", async () => {
    await press("Complete the refund of 5.00 EUR");
    await said("Refund completed.").waitFor();
    await status("Partially refunded").waitFor();
    await hasTitles(
      "payment.partially_refunded",
      "refund.completed",
      "refund.created",
      "refund.created",
    );
    await press("Fail the refund of 10.00 EUR");
    await said("Refund failed: its amount can be refunded again.").waitFor();
    await region("Refunds").getByText("processing_failed").waitFor();
    assert.equal(await button(/refund of/).count(), 0);
    await hasTitles("refund.failed");
    await button("Refund…").waitFor();
    assert.match(await details(), /Refunded\s+5\.00 EUR/);
    assert.doesNotMatch(await details(), /Refund pending/);
  });

  await step("the payer disputes the rest, and the merchant wins", async () => {
    await chargeback();
    await on.heading("The payer disputes the payment").waitFor();
    assert.match(await details(), /Chargeback\s+10\.00 EUR/);
    await region("Advance").getByText("The merchant wins the dispute").waitFor();
    await press("Win the dispute");
    await said("Dispute won.").waitFor();
    await status("Partially refunded").waitFor();
    await hasTitles(
      "payment.partially_refunded Chargeback reversed",
      "dispute.won",
      "payment.chargeback Disputed by the payer",
      "dispute.created",
    );
    await on.page.getByRole("table", { name: /^Chargeback reversed/ }).waitFor();
    assert.equal(await on.page.getByText("Disputed", { exact: true }).count(), 0);
    await region("Disputes").getByText("Won", { exact: true }).waitFor();
  });

  await step("evidence is refused, reviewed, and the dispute accepted", async () => {
    await chargeback();
    const disputes = region("Disputes");
    await disputes.getByText("Needs response", { exact: true }).waitFor();
    await disputes.getByText(/Without evidence the dispute is lost/).waitFor();
    await press("Submit evidence");
    await on.fault("invalid_parameter").waitFor();
    await submit({ Evidence: "A signed receipt" }, "Submit evidence");
    await said("Evidence submitted: the dispute is under review.").waitFor();
    await disputes.getByText("Evidence: A signed receipt").waitFor();
    assert.equal(await button("Submit evidence").count(), 0);
    await press("Accept the dispute…", "Accept the dispute");
    await said("Dispute accepted: it is lost.").waitFor();
    await disputes.getByText("Lost", { exact: true }).waitFor();
    await hasTitles("dispute.lost", "dispute.updated", "payment.chargeback Disputed by the payer");
    await status("Chargeback").waitFor();
  });

  await step("the test card is disputed at once, and winning evidence wins", async () => {
    await on.fresh("payments/new");
    await choose(/···· 0259/);
    await press("Create payment");
    await status("Chargeback").waitFor();
    await region("Disputes").getByText("Fraudulent", { exact: true }).waitFor();
    await submit({ Evidence: "winning_evidence" }, "Submit evidence");
    await said("Evidence submitted: the dispute is won.").waitFor();
    await status("Completed").waitFor();
  });

  await step(
    "3-D Secure in variant B leads to an authorization, and a cancel releases it",
    async () => {
      await on.fresh("payments/new");
      await choose(/···· 3155/, /^B /);
      await on.fill({ Capture: "manual" });
      assert.deepEqual(
        Object.keys(await on.preview()),
        ["amount_minor", "currency", "method_kind", "payer", "card", "capture"],
      );
      await press("Create payment");
      await on.heading("3-D Secure is waiting").waitFor();
      await press("Authenticate");
      await said("Authenticated: the payment is authorized.").waitFor();
      await status("Authorized").waitFor();
      await press("Cancel payment…", "Cancel payment");
      await status("Cancelled").waitFor();
      assert.equal(await button("Capture…").count(), 0);
    },
  );

  await step("an IBAN has no capture: the form does not send it", async () => {
    await on.fresh("payments/new");
    await on.fill({ Capture: "manual" });
    await choose("IBAN");
    assert.equal(await on.field("Capture").count(), 0);
    assert.equal((await on.preview()).capture, undefined);
    await press("Create payment");
    await status("Completed").waitFor();
  });
});
