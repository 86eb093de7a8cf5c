/**
 * The requests of the forms: their idempotency keys, and the fields that only some users need, such
 * as metadata of every resource and evidence that is only saved.
 */

import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import { consoleCase } from "../support/console/console_case.ts";

const V1 = "/api-v1-payments/v1";

const button = (page: Page, name: string) => page.getByRole("button", { name, exact: true });
const said = (page: Page) => page.locator("[aria-live] .notice");

consoleCase("a form sends a key of the user, once or twice", async (step, place) => {
  const { start } = place;
  const { page } = await place.enter("#/payments/new");
  const go = (to: string) => page.goto(`${place.origin}/console/#/${to}`);
  const count = async () => {
    const { body } = await start.call("GET", `${V1}/payments?limit=100`);
    return (body as { data: unknown[] }).data.length;
  };
  const open = () => page.getByText("Idempotency and faults").click();
  const key = () => page.getByLabel(/^Idempotency key/);
  const fresh = async () => {
    await go("payments");
    await page.getByRole("heading", { name: "Payments" }).waitFor();
    await go("payments/new");
    await open();
  };

  await step("a key with a space is refused at its field, and nothing is sent", async () => {
    await open();
    await key().fill("order 1");
    await button(page, "Create payment").click();
    await page.locator(".fault").getByText(/without spaces/).waitFor();
    assert.equal(await count(), 0);
  });
  await step("sent twice with an own key: one payment, and the stored response", async () => {
    await key().fill("order-1");
    await page.getByLabel("Send the request twice, with one key").check();
    await button(page, "Create payment").click();
    await said(page).getByText("Payment created: completed.").waitFor();
    await said(page).getByText(
      "Sent twice: the second request got the stored 201 of the first, byte for byte, and had no effect of its own.",
    ).waitFor();
    assert.equal(await count(), 1);
  });
  await step("the stored record shows the first request and its response", async () => {
    const id = page.url().split("/").at(-1)!;
    await page.getByRole("link", { name: "Show the stored record" }).click();
    const stored = page.getByRole("region", { name: "The stored response" });
    assert.equal(JSON.parse(await stored.innerText()).id, id);
    const details = await page.getByRole("region", { name: "First request" }).innerText();
    assert.match(details, /POST \/api-v1-payments\/v1\/payments\s+Status\s+201\s+Replays\s+1/);
  });
  await step(
    "the same key with another amount is a conflict, and leads to the record",
    async () => {
      await fresh();
      await key().fill("order-1");
      await page.getByLabel("Amount", { exact: true }).fill("20");
      await button(page, "Create payment").click();
      await page.getByRole("alert").getByText("idempotency_conflict").waitFor();
      await page.getByRole("link", { name: "Stored record of this key" }).click();
      await page.getByRole("heading", { name: "Idempotency key" }).waitFor();
      assert.equal(await count(), 1);
    },
  );
  await step("a declined payment is replayed too, a refused one is not stored", async () => {
    await fresh();
    await page.getByLabel("Send the request twice, with one key").check();
    await page.getByRole("radio", { name: /···· 9995/ }).check();
    await button(page, "Create payment").click();
    await said(page).getByText("The payment is stored.").waitFor();
    await said(page).getByText(/got the stored 402 of the first/).waitFor();
    await fresh();
    await page.getByLabel("Send the request twice, with one key").check();
    await page.getByLabel("Currency").fill("EURO");
    await button(page, "Create payment").click();
    await said(page).getByText(/^Sent twice: the second response is 400 and not a stored one/)
      .waitFor();
    assert.equal(await count(), 2);
  });
  await step("the record of a key that nobody has used: not found", async () => {
    await go("idempotency_keys/order-2");
    await page.getByText("not_found").waitFor();
  });
  await step("a response under “API calls” leads to its record", async () => {
    await page.getByRole("button", { name: /^API calls/ }).click();
    await page.getByRole("button", { name: /^POST \/v1\/payments 402/ }).first().click();
    await page.getByRole("tab", { name: "Response" }).click();
    await page.getByRole("link", { name: /^Stored record of/ }).click();
    await page.getByText("insufficient_funds").first().waitFor();
  });
});

consoleCase("the rarer fields of operations", async (step, { enter, start, origin }) => {
  const { page } = await enter();
  const go = (to: string) => page.goto(`${origin}/console/#/${to}`);
  const { body } = await start.call("POST", `${V1}/payments`, {
    amount: 5000,
    currency: "EUR",
    outcome: "success",
  });
  const { id } = body as { id: string };
  const newest = async (list: string) => {
    const { body } = await start.call("GET", `${V1}/${list}?limit=1`);
    return (body as { data: Record<string, unknown>[] }).data[0]!;
  };

  await step(
    "a payment has the merchant’s id of the customer, which lists its payments",
    async () => {
      await go("payments/new");
      await page.getByLabel("Your id of the customer").fill("user-7");
      await button(page, "Create payment").click();
      await page.getByRole("link", { name: "user-7" }).click();
      await page.getByLabel("Customer’s id").waitFor();
      await page.waitForFunction(() =>
        // deno-lint-ignore no-explicit-any
        (globalThis as any).document.querySelectorAll("tbody tr").length === 1
      );
      await button(page, "Clear filter").click();
    },
  );
  const preview = async () =>
    JSON.parse(await page.getByRole("region", { name: "Body of the request" }).innerText());
  const fresh = async (to: string) => {
    await go("balance");
    await page.getByRole("heading", { name: "Balance", level: 1 }).waitFor();
    await go(to);
  };
  await step("a card has a postal code", async () => {
    await fresh("payments/new");
    await page.getByLabel(/^Postal code/).fill("10115");
    assert.equal((await preview()).card.postal_code, "10115");
    await button(page, "Create payment").click();
    await said(page).getByText("Payment created: completed.").waitFor();
  });
  await step("an IBAN has a BIC and a holder, of a payment and of a transfer", async () => {
    const account = {
      iban: "DE89 3704 0044 0532 0130 00",
      bic: "COBADEFF",
      holder_name: "Ada Lovelace",
    };
    const fill = async (bic: string) => {
      await page.getByLabel(/^BIC/).fill(bic);
      await page.getByLabel(/^Account holder/).fill(account.holder_name);
    };
    await fresh("payments/new");
    await page.getByRole("radio", { name: "IBAN", exact: true }).check();
    await fill("COBA");
    await button(page, "Create payment").click();
    await page.locator(".fault").getByText(/a BIC of 8 or 11 characters/).waitFor();
    await fill(account.bic);
    assert.deepEqual((await preview()).iban, account);
    await button(page, "Create payment").click();
    await said(page).getByText(/^Payment created/).waitFor();
    await fresh("transfers/new");
    await fill("COBA");
    await button(page, "Create transfer").click();
    await page.locator(".fault").getByText(/a BIC of 8 or 11 characters/).waitFor();
    await fill(account.bic);
    assert.deepEqual((await preview()).destination, { iban: account });
    await button(page, "Create transfer").click();
    await said(page).getByText(/^Transfer created/).waitFor();
  });
  await step("the wallet of a transfer has an asset", async () => {
    await fresh("transfers/new");
    await page.getByRole("radio", { name: "Wallet", exact: true }).check();
    await page.getByLabel("Asset").selectOption("USDT");
    assert.equal((await preview()).destination.wallet.asset, "USDT");
  });
  await step("an endpoint takes patterns", async () => {
    await go("webhooks/new");
    await page.getByRole("radio", { name: "Inbox" }).check();
    await page.getByRole("radio", { name: "Chosen events" }).check();
    await page.getByRole("checkbox", { name: "payment.completed" }).uncheck();
    await page.getByRole("checkbox", { name: "payment.*" }).check();
    await page.getByRole("checkbox", { name: "refund.*" }).check();
    await button(page, "Add endpoint").click();
    await said(page).getByText("Endpoint added.").waitFor();
    assert.deepEqual((await newest("webhook_endpoints"))["events"], ["payment.*", "refund.*"]);
  });
  await step("a refund has metadata", async () => {
    await go(`payments/${id}`);
    await button(page, "Refund…").click();
    const dialog = page.getByRole("dialog", { name: "Refund" });
    await dialog.getByLabel("Amount in EUR").fill("1");
    await button(page, "Add metadata").click();
    await dialog.getByLabel("Name 1").fill("ticket");
    await dialog.getByLabel("Value 1").fill("77");
    await dialog.getByRole("button", { name: "Refund", exact: true }).click();
    await page.getByText("metadata.ticket").waitFor();
    assert.deepEqual((await newest("refunds"))["metadata"], { ticket: "77" });
  });
  await step("a chargeback has the chosen reason", async () => {
    await page.getByLabel("Reason").selectOption("product_not_received");
    await page.getByRole("region", { name: "Advance" })
      .getByRole("button", { name: /^Chargeback/ }).click();
    await page.getByRole("region", { name: "Disputes" }).getByText("Product not received")
      .waitFor();
  });
  await step("evidence is saved, and submitted later", async () => {
    await page.getByLabel("Evidence").last().fill("A receipt");
    await button(page, "Save for later").click();
    await said(page).getByText(/^Evidence saved/).waitFor();
    const saved = (await newest("disputes"))["evidence"] as { submitted_at: unknown };
    assert.equal(saved.submitted_at, null);
    await button(page, "Submit evidence").click();
    await said(page).getByText("Evidence submitted: the dispute is under review.").waitFor();
  });
  await step("an endpoint has metadata, and an edit can remove it", async () => {
    await go("webhooks/new");
    await page.getByRole("radio", { name: "Inbox" }).check();
    await button(page, "Add metadata").click();
    await page.getByLabel("Name 1").fill("team");
    await page.getByLabel("Value 1").fill("shop");
    await button(page, "Add endpoint").click();
    await page.getByText("metadata.team").waitFor();
    await button(page, "Edit…").click();
    await button(page, "Remove team").click();
    await button(page, "Save").click();
    await page.getByText("metadata.team").waitFor({ state: "detached" });
    assert.deepEqual((await newest("webhook_endpoints"))["metadata"], {});
  });
  await step("the clock goes to a time", async () => {
    await page.locator(".clock").click();
    await page.getByLabel("Advance by").selectOption("to");
    const to = new Date(Date.now() + 86_400_000).toISOString();
    await page.getByLabel("Time", { exact: true }).fill("2001-01-01");
    await button(page, "Set the clock").click();
    await page.locator(".fault").getByText("invalid_parameter").waitFor();
    await page.getByLabel("Time", { exact: true }).fill(to);
    await page.getByLabel("After that").selectOption("frozen");
    await button(page, "Set the clock").click();
    await page.getByText(/^The clock shows/).waitFor();
    const { body } = await start.call("GET", "/api-v1-sandbox/clock");
    assert.equal((body as { now: string }).now, to);
  });
});
