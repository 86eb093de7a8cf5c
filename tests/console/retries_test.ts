/**
 * No request of the console has an effect twice: a form, a button or a dialog that is used again
 * after a lost response has the same idempotency key. A form can also send a key of the user, the
 * request twice, and a fault of one request. data_test.ts has the ends after which a key is kept.
 */

import assert from "node:assert/strict";
import { consoleCase } from "../support/console/console_case.ts";

/** Attempts that the client makes before it gives up. */
const ATTEMPTS = 3;

consoleCase("a request that is sent again has no second effect", async (step, place) => {
  const { make, count } = place;
  const on = await place.enter("#/payments/new");
  const { page, link, region, heading, button, said, press, see, submit, field, fill, fault, go } =
    on;
  const keys: (string | undefined)[] = [];
  page.on("request", (request) => {
    if (request.method() !== "POST" && request.method() !== "PUT") return;
    keys.push(request.headers()["idempotency-key"]);
  });
  const made = () => count("payments?limit=100");
  const open = () => page.getByText("Idempotency and faults").click();
  const twice = () => field("Send the request twice, with one key").check();
  const fresh = async (values: Record<string, string> = {}) => {
    await on.fresh("payments/new");
    await open();
    await fill(values);
  };

  await step("a key with a space is refused at its field, and nothing is sent", async () => {
    await open();
    await submit({ "Idempotency key": "order 1" }, "Create payment");
    await fault(/without spaces/).waitFor();
    assert.equal(await made(), 0);
  });
  await step("sent twice with an own key: one payment, and the stored response", async () => {
    await twice();
    await submit({ "Idempotency key": "order-1" }, "Create payment");
    await said("Payment created: completed.").waitFor();
    await said(
      "Sent twice: the second request got the stored 201 of the first, byte for byte, and had no effect of its own.",
    ).waitFor();
    assert.equal(await made(), 1);
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
    await heading("Idempotency key").waitFor();
    assert.equal(await made(), 1);
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
    assert.equal(await made(), 2);
  });
  await step("a response under “API calls” leads to its record", async () => {
    await press(/^API calls/, /^POST \/v1\/payments 402/);
    await page.getByRole("tab", { name: "Response" }).click();
    await link(/^Stored record of/).click();
    await see("insufficient_funds");
    await press(/^API calls/);
  });

  await step("a fault 429, and the retry pays", async () => {
    await fresh({ "Fault of this request": "rate_limited" });
    await press("Create payment");
    await said("Payment created: completed.").waitFor();
    await said("Fault “Rate limited”: attempt 1 got 429, attempt 2 got 201.").waitFor();
    assert.equal(await made(), 3);
  });
  await step("a fault that loses the response, and the retry gets the stored one", async () => {
    await fresh({ "Fault of this request": "connection_lost_after" });
    await press("Create payment");
    await said(/attempt 1 got no response, attempt 2 got 201\./).waitFor();
    assert.equal(await made(), 4);
  });
  await step("sent twice, only the first request has the fault", async () => {
    await fresh({ "Fault of this request": "server_error_before" });
    await twice();
    await press("Create payment");
    await said(/attempt 1 got 500, attempt 2 got 201\. Sent twice: .*byte for byte/).waitFor();
    assert.equal(await made(), 5);
  });
  await step("a delay that the API refuses, at its field", async () => {
    await fresh({ "Fault of this request": "delay" });
    await submit({ "Delay in milliseconds": "10001" }, "Create payment");
    await fault(/must be 1 to 10000 milliseconds/).first().waitFor();
    const begun = Date.now();
    await submit({ "Delay in milliseconds": "600" }, "Create payment");
    await said("Fault “Delay”: attempt 1 got 201.").waitFor();
    assert.ok(Date.now() - begun >= 600);
  });
  await step("a lost response: the page says so and keeps the input", async () => {
    await page.route("**/v1/payments", async (route) => {
      if (route.request().method() !== "POST") return route.continue();
      // The request arrives and has its effect. Only its response is lost.
      await route.fetch();
      await route.abort("connectionreset");
    });
    await on.fresh("payments/new");
    keys.length = 0;
    const typed = { Amount: "77.70", Description: "typed with care" };
    await submit(typed, "Create payment", "The API cannot be reached.");
    await see("Nothing that you typed is lost.");
    assert.equal(await field("Amount").inputValue(), "77.70");
    assert.equal(await field(/^Description/).inputValue(), "typed with care");
    await page.unroute("**/v1/payments");
  });
  await step("a second click sends the same key: one payment", async () => {
    await press("Create payment");
    await heading("77.70 EUR").waitFor();
    assert.equal(keys.length, ATTEMPTS + 1);
    assert.equal(new Set(keys).size, 1);
    assert.equal(await made(), 7);
  });
  await step("the next payment has a new key", async () => {
    await page.goBack();
    await heading("Create a payment").waitFor();
    await press("Create payment");
    await heading("19.99 EUR").waitFor();
    assert.notEqual(keys.at(-1), keys[0]);
    assert.equal(await made(), 8);
  });
  await step("while the API is unavailable the page keeps its data and retries", async () => {
    await page.context().setOffline(true);
    await see("The API cannot be reached.");
    await heading("19.99 EUR").waitFor();
    await page.context().setOffline(false);
    await page.getByText("The API cannot be reached.").first().waitFor({ state: "detached" });
  });

  const whe = await make("webhook_endpoints", { url: "http://127.0.0.1:4343/" });
  const paid = await make("payments", { amount: 5000, currency: "EUR", outcome: "success" });
  const refunds = () => count(`refunds?payment_id=${paid}`);
  const refund = async () => {
    await press("Refund…");
    await submit({ "Amount in EUR": "10.00" }, "Refund");
  };
  await step("a dialog is closed after a lost response, and opened again: one refund", async () => {
    await go(`payments/${paid}`);
    await page.route("**/refund", async (route) => {
      await route.fetch();
      await route.abort();
    });
    await refund();
    await see("The API cannot be reached.");
    await press("Cancel");
    await page.unroute("**/refund");
    await refund();
    await said().waitFor();
    assert.equal(await refunds(), 1);
  });
  await step("the next refund is another one", async () => {
    await refund();
    await on.dialog().waitFor({ state: "detached" });
    assert.equal(await refunds(), 2);
  });
  await step("a button outside of forms: one key until the API has decided", async () => {
    await go(`webhooks/${whe}`);
    await button("Disable").waitFor();
    const fault = { on: "request", fault: "server_error_before", times: ATTEMPTS };
    await make("/api-v1-sandbox/faults", { ...fault, where: { method: "PUT" } });
    keys.length = 0;
    await press("Disable");
    await page.getByRole("alert").waitFor();
    assert.equal(keys.length, ATTEMPTS);
    await press("Disable");
    await on.status("Disabled").waitFor();
    assert.equal(keys.length, ATTEMPTS + 1);
    assert.equal(new Set(keys).size, 1);
  });
});
