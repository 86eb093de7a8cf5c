/**
 * The requests of the forms: their idempotency keys, and the fields that only some users need, such
 * as metadata of every resource and evidence that is only saved.
 */

import assert from "node:assert/strict";
import { consoleCase } from "../support/console/console_case.ts";

consoleCase("a form sends a key of the user, once or twice", async (step, { enter, count }) => {
  const on = await enter("#/payments/new");
  const { page, link, region, said, press, see, submit, field } = on;
  const open = () => page.getByText("Idempotency and faults").click();
  const twice = () => field("Send the request twice, with one key").check();
  const fresh = async () => {
    await on.fresh("payments/new");
    await open();
  };

  await step("a key with a space is refused at its field, and nothing is sent", async () => {
    await open();
    await submit({ "Idempotency key": "order 1" }, "Create payment");
    await on.fault(/without spaces/).waitFor();
    assert.equal(await count("payments"), 0);
  });
  await step("sent twice with an own key: one payment, and the stored response", async () => {
    await twice();
    await submit({ "Idempotency key": "order-1" }, "Create payment");
    await said("Payment created: completed.").waitFor();
    await said(
      "Sent twice: the second request got the stored 201 of the first, byte for byte, and had no effect of its own.",
    ).waitFor();
    assert.equal(await count("payments"), 1);
  });
  await step("the stored record shows the first request and its response", async () => {
    const id = page.url().split("/").at(-1)!;
    await link("Show the stored record").click();
    assert.equal(JSON.parse(await region("The stored response").innerText()).id, id);
    assert.match(
      await region("First request").innerText(),
      /POST \/api-v1-payments\/v1\/payments\s+Status\s+201\s+Replays\s+1/,
    );
  });
  await step("the same key with another amount is a conflict", async () => {
    await fresh();
    await submit({ "Idempotency key": "order-1", Amount: "20" }, "Create payment");
    await page.getByRole("alert").getByText("idempotency_conflict").waitFor();
    await link("Stored record of this key").click();
    await on.heading("Idempotency key").waitFor();
    assert.equal(await count("payments"), 1);
  });
  await step("a declined payment is replayed too, a refused one is not stored", async () => {
    await fresh();
    await twice();
    await on.choose(/···· 9995/);
    await press("Create payment");
    await said("The payment is stored.").waitFor();
    await said(/got the stored 402 of the first/).waitFor();
    await fresh();
    await twice();
    await submit({ Currency: "EURO" }, "Create payment");
    await said(/^Sent twice: the second response is 400 and not a stored one/).waitFor();
    assert.equal(await count("payments"), 2);
  });
  await step("the record of a key that nobody has used: not found", async () => {
    await on.go("idempotency_keys/order-2");
    await see("not_found");
  });
  await step("a response under “API calls” leads to its record", async () => {
    await press(/^API calls/, /^POST \/v1\/payments 402/);
    await page.getByRole("tab", { name: "Response" }).click();
    await link(/^Stored record of/).click();
    await see("insufficient_funds");
  });
});

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
