/**
 * Forms of the console: an error appears at its field, which keeps its input, and fields that only
 * some users need, such as metadata, are sent.
 */

import assert from "node:assert/strict";
import { consoleCase } from "../support/console/console_case.ts";

/** The input of a field, and the error that must appear at it. */
const FIELD_FAULTS: [instrument: string, label: string, typed: string, fault: RegExp][] = [
  ["Test card", "Amount", "0", /invalid_parameter/],
  ["Test card", "Amount", "1.999", /can mean 1999 or 1\.999/],
  ["Test card", "Amount", "", /Enter an amount/],
  ["Test card", "Currency", "EURO", /invalid_parameter/],
  ["Test card", "Card number", "4242 4242 4242 4241", /Use a test card number.*invalid_parameter/],
  ["Test card", "Month", "13", /invalid_parameter/],
  ["Test card", "Year", "soon", /Enter a whole number/],
  ["Test card", "CVC", "12", /invalid_parameter/],
  ["Test card", "Customer’s e-mail", "nobody", /invalid_parameter/],
  ["Test card", "Description", "x".repeat(501), /invalid_parameter/],
  ["Test card", "Reference", "x".repeat(256), /invalid_parameter/],
  ["Test card", "Return URL", "http://shop.example", /must begin with https.*invalid_parameter/],
  ["Card token", "Token", "tok_visa", /begins with "pm_".*invalid_parameter/],
  ["IBAN", "IBAN", "DE00 1234", /not an IBAN.*invalid_parameter/],
  ["Wallet", "Address", "0x0000000000000000000000000000000000000000", /invalid_parameter/],
];

const PAID = { amount: 500, currency: "EUR", outcome: "success" };

consoleCase("an API error appears at its field, with its code", async (step, place) => {
  const { make } = place;
  const on = await place.enter("#/payments");
  const { page, choose, submit, press, fault, go } = on;
  for (const [index, [instrument, label, typed, expected]] of FIELD_FAULTS.entries()) {
    const variant = index % 2 === 0 ? "A" : "B";
    await step(`${label} "${typed.slice(0, 20)}" in variant ${variant}`, async () => {
      await on.fresh("payments/new");
      await choose(instrument, new RegExp(`^${variant} `));
      await submit({ [label]: typed }, "Create payment");
      await fault().waitFor();
      // The form focuses the field after it has rendered the error.
      const field = page.locator('[aria-invalid="true"]:focus');
      await field.waitFor();
      assert.equal(await field.count(), 1);
      assert.equal(await field.evaluate(nameOf), label);
      const described = (await field.getAttribute("aria-describedby"))!.split(" ")[0]!;
      assert.match(await page.locator(`[id="${described}"]`).innerText(), expected);
      assert.equal(await field.inputValue(), typed);
    });
  }
  await step("a refund above the rest: at the amount", async () => {
    await go(`payments/${await make("payments", PAID)}`);
    await press("Refund…");
    await submit({ "Amount in EUR": "5.01" }, "Refund");
    await fault("invalid_parameter").waitFor();
    assert.equal(await on.field("Amount in EUR").inputValue(), "5.01");
    await page.keyboard.press("Escape");
  });
  await step("an endpoint: at its URL and at its events", async () => {
    await go("webhooks/new");
    await submit({ URL: "ftp://example.com" }, "Add endpoint");
    await fault("invalid_parameter").waitFor();
    await choose("Chosen events");
    await on.checkbox("payment.completed").uncheck();
    await submit({ URL: "http://127.0.0.1:4343/" }, "Add endpoint");
    await page.locator(".boxes .fault").getByText("invalid_parameter").waitFor();
  });
  await step("a move that another client has made impossible", async () => {
    const id = await make("payments", { amount: 500, currency: "EUR" });
    await go(`payments/${id}`);
    await page.route("**/cancel", async (route) => {
      await make(`payments/${id}/cancel`);
      await route.continue();
    });
    await press("Cancel payment…", "Cancel payment");
    await on.status("Cancelled").waitFor();
  });
});

/** Runs in the page. Returns the label of a field without its mark of an optional one. */
const nameOf = (field: Element) => (field as HTMLInputElement).labels![0]!.firstChild!.textContent;

consoleCase("the rarer fields of operations", async (step, { enter, make, send }) => {
  const on = await enter();
  const { page, region, press, see, submit, choose, checkbox } = on;
  const id = await make("payments", { amount: 5000, currency: "EUR", outcome: "success" });
  const newest = async (list: string) => (await send("GET", `${list}?limit=1`)).data[0];
  const addMetadata = async (name: string, value: string) => {
    await press("Add metadata");
    await on.field("Name 1").fill(name);
    await on.field("Value 1").fill(value);
  };

  await step("the merchant’s id of the customer lists its payments", async () => {
    await on.go("payments/new");
    await submit({ "Your id of the customer": "user-7" }, "Create payment");
    await on.link("user-7").click();
    await on.field("Customer’s id").waitFor();
    await on.showsRows("Payments", 1);
    await press("Clear filter");
  });
  await step("a card has a postal code", async () => {
    await on.fresh("payments/new");
    await on.fill({ "Postal code": "10115" });
    assert.equal((await on.preview()).card.postal_code, "10115");
    await press("Create payment");
    await on.said("Payment created: completed.").waitFor();
  });
  await step("an IBAN has a BIC and a holder, of a payment and of a transfer", async () => {
    const account = { bic: "COBADEFF", holder_name: "Ada Lovelace" };
    const iban = "DE89 3704 0044 0532 0130 00";
    for (const kind of ["payment", "transfer"]) {
      await on.fresh(`${kind}s/new`);
      if (kind === "payment") await choose("IBAN");
      await submit({ BIC: "COBA", "Account holder": account.holder_name }, `Create ${kind}`);
      await on.fault(/a BIC of 8 or 11 characters/).waitFor();
      await on.fill({ BIC: account.bic });
      const preview = await on.preview();
      assert.deepEqual(preview.iban ?? preview.destination.iban, { iban, ...account });
      await press(`Create ${kind}`);
      await on.said(new RegExp(`^${kind} created`, "i")).waitFor();
    }
  });
  await step("an endpoint takes patterns", async () => {
    await on.go("webhooks/new");
    await choose("Inbox", "Chosen events");
    await checkbox("payment.completed").uncheck();
    for (const name of ["payment.*", "refund.*"]) await checkbox(name).check();
    await press("Add endpoint");
    await on.said("Endpoint added.").waitFor();
    assert.deepEqual((await newest("webhook_endpoints")).events, ["payment.*", "refund.*"]);
  });
  await step("a refund has metadata", async () => {
    await on.go(`payments/${id}`);
    await press("Refund…");
    await addMetadata("ticket", "77");
    await submit({ "Amount in EUR": "1" }, "Refund", "metadata.ticket");
    assert.deepEqual((await newest("refunds")).metadata, { ticket: "77" });
  });
  await step("a chargeback has the chosen reason", async () => {
    await on.field("Reason").selectOption("product_not_received");
    await region("Advance").getByRole("button", { name: /^Chargeback/ }).click();
    await region("Disputes").getByText("Product not received").waitFor();
  });
  await step("evidence is saved, and submitted later", async () => {
    await submit({ Evidence: "A receipt" }, "Save for later");
    await on.said(/^Evidence saved/).waitFor();
    assert.equal((await newest("disputes")).evidence.submitted_at, null);
    await press("Submit evidence");
    await on.said("Evidence submitted: the dispute is under review.").waitFor();
  });
  await step("an endpoint has metadata, and an edit can remove it", async () => {
    await on.go("webhooks/new");
    await choose("Inbox");
    await addMetadata("team", "shop");
    await press("Add endpoint");
    await see("metadata.team");
    await press("Edit…", "Remove team", "Save");
    await page.getByText("metadata.team").waitFor({ state: "detached" });
    assert.deepEqual((await newest("webhook_endpoints")).metadata, {});
  });
  await step("the clock goes to a time", async () => {
    await page.locator(".clock").click();
    await on.fill({ "Advance by": "to", "After that": "frozen" });
    await submit({ Time: "2001-01-01" }, "Set the clock");
    await on.fault("invalid_parameter").waitFor();
    const to = new Date(Date.now() + 86_400_000).toISOString();
    await submit({ Time: to }, "Set the clock", /^The clock shows/);
    assert.equal((await send("GET", "/api-v1-sandbox/clock")).now, to);
  });
});
