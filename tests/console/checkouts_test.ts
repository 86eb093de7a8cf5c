/** Checkouts in the console: a link from its form to its cancel, and the form for an order. */

import assert from "node:assert/strict";
import { consoleCase, PHONE } from "../support/console/console_case.ts";
import { readQrCode } from "../support/console/qr_reader.ts";

consoleCase("a link is created, paid as its payers do, and cancelled", async (step, place) => {
  const { enter, send } = place;
  const on = await enter("#/checkouts");
  const { page, link, press, see, submit, status, region } = on;
  const now = () => send("GET", `checkouts/${page.url().split("/").at(-1)}`);
  const pay = async (values: Record<string, string>, said: string) => {
    await press("Pay as the payer…");
    await submit(values, "Pay");
    await on.said(said).waitFor();
  };

  await step("the form makes a link, whose QR code a phone reads", async () => {
    await link("Create the first checkout").click();
    await on.choose("Many payers: a link");
    await on.fill({ Amount: "15", Description: "Print", "Other prices": "17.00 USD\n18 usdc" });
    await submit({ Expires: "never" }, "Create checkout", "Link created.", "Link, 0 paid");
    const { url, other_prices, expires_at } = await now();
    assert.deepEqual(other_prices, [
      { amount_minor: 1_700, currency: "USD" },
      { amount_minor: 18_000_000, currency: "USDC" },
    ]);
    assert.equal(expires_at, null);
    await page.setViewportSize(PHONE);
    assert.equal(await readQrCode(page), url);
    await on.button("Copy the link").waitFor();
  });
  await step("three payers pay it, and one is declined", async () => {
    await pay({ "Test card": "pm_card_chargeDeclined" }, "Payment declined.");
    await pay({
      "Test card": "pm_card_authenticationRequired",
      ...{ "3-D Secure, if asked": "success", Currency: "USD" },
    }, "Payment completed.");
    await pay({ "Paid with": "sepa_debit" }, "Payment processing.");
    await pay({ "Paid with": "stablecoin" }, "Payment pending.");
    await see("Link, 2 paid");
    const rows = on.rows("Payments");
    await rows.nth(3).waitFor();
    assert.match(await rows.nth(2).innerText(), /^17\.00 USD[^]*Completed/);
  });
  await step("a payment links its checkout, and the checkout lists its payments", async () => {
    await region("Payments").getByText("17.00").click();
    await link(/^chk_/).click();
    await link("All of them").click();
    await on.field("Checkout").waitFor();
    await on.showsRows("Payments", 4);
    await page.goBack();
  });
  await step("a cancelled link takes no payment", async () => {
    await press("Cancel checkout…", "Cancel checkout");
    await status("Cancelled").waitFor();
    assert.equal(await on.button("Pay as the payer…").count(), 0);
    assert.equal(await page.locator(".qr").count(), 0);
  });
});

consoleCase("the form of a checkout sends its fields, and keeps them", async (step, place) => {
  const on = await place.enter("#/checkouts/new");
  const { page, submit, fault, see } = on;
  await step("an error appears at its field, and the fields keep their values", async () => {
    for (
      const [label, typed, expected] of [
        ["Other prices", "USD", /Enter an amount/],
        ["Other prices", "17.00 EUR", /has a price already/],
        ["Expires", "60 days", /at most 30 days ahead/],
        ["Language", "German", /two letters/],
        ["Return URL", "ftp://shop.example", /https/],
      ] as const
    ) {
      await submit({ [label]: typed }, "Create checkout");
      await fault(expected).first().waitFor();
      assert.equal(await on.field(new RegExp(`^${label}`)).inputValue(), typed);
      await on.fill({ [label]: "" });
    }
  });
  await step("it makes a checkout for an order, which a saved card pays", async () => {
    const saved = await place.send("POST", "payments", {
      ...{ amount: 100, currency: "EUR", card: { token: "pm_card_visa" }, save: "off_session" },
      customer: { id: "user-7", email: "ada@example.com" },
    });
    assert.ok(saved.instrument_id, JSON.stringify(saved));
    await on.checkbox("card").check();
    await submit(
      {
        ...{ Amount: "49", Reference: "order-7", Expires: "7 days", Language: "de" },
        ...{ "Customer’s e-mail": "ada@example.com", "Your id of the customer": "user-7" },
        ...{ Capture: "manual", "Return URL": "https://shop.example/7" },
      },
      "Create checkout",
      "Checkout created.",
    );
    await on.press("Pay as the payer…");
    await submit({ "Paid with": "instrument" }, "Pay");
    await fault("invalid_parameter").waitFor();
    await submit({ Instrument: saved.instrument_id }, "Pay", "Payment authorized.");
    await on.status("Completed").waitFor();
    const { methods, locale, capture, reference, customer, return_url } = await place.send(
      "GET",
      `checkouts/${page.url().split("/").at(-1)}`,
    );
    assert.deepEqual([methods, locale, capture, reference, customer.id, return_url], [
      ["card"],
      ...["de", "manual", "order-7", "user-7", "https://shop.example/7"],
    ]);
  });
  await step("the list finds it by its reference", async () => {
    await on.go("checkouts?reference=order-7");
    await on.showsRows("Checkouts", 1);
    await see("One payment");
  });
});
