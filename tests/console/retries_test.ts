/**
 * Retries of the console: a button that is pressed again after a lost response has the same
 * idempotency key, and a form can send a fault of one request.
 */

import assert from "node:assert/strict";
import { consoleCase } from "../support/console/console_case.ts";

/** Attempts that the client makes before it gives up. */
const ATTEMPTS = 3;

/** A button outside of the forms, the page that has it, and the path of its request. */
const ACTIONS: readonly (readonly [
  button: string | RegExp,
  section: "payments" | "webhooks",
  path: RegExp,
])[] = [
  [/^Chargeback/, "payments", /\/payments\/pay_\w+\/advance$/],
  ["Win the dispute", "payments", /\/payments\/pay_\w+\/advance$/],
  [/^Redeliver/, "webhooks", /\/webhook_deliveries\/whd_\w+\/redeliver$/],
  ["Disable", "webhooks", /\/webhook_endpoints\/whe_\w+$/],
];

consoleCase("a button that is pressed again keeps its idempotency key", async (step, place) => {
  const { make } = place;
  const ids = {
    webhooks: await make("webhook_endpoints", { url: "http://127.0.0.1:4343/" }),
    payments: await make("payments", { amount: 500, currency: "EUR", outcome: "success" }),
  };
  const { page, go, button, said } = await place.enter();
  const sent: { path: string; key: string | undefined }[] = [];
  page.on("request", (request) => {
    if (request.method() !== "POST" && request.method() !== "PUT") return;
    const { pathname: path } = new URL(request.url());
    sent.push({ path, key: request.headers()["idempotency-key"] });
  });
  const keys = new Set<string>();
  for (const [name, section, path] of ACTIONS) {
    await step(`${name}: one key until the API has decided`, async () => {
      await go(`${section}/${ids[section]}`);
      await button(name).first().waitFor();
      await make("/api-v1-sandbox/faults", {
        on: "request",
        fault: "server_error_before",
        times: ATTEMPTS,
        where: { method: name === "Disable" ? "PUT" : "POST" },
      });
      sent.length = 0;
      await button(name).first().click();
      await page.getByRole("alert").waitFor();
      assert.equal(sent.length, ATTEMPTS);
      await button(name).first().click();
      await said().waitFor();
      assert.equal(sent.length, ATTEMPTS + 1);
      assert.ok(sent.every((request) => path.test(request.path)), JSON.stringify(sent));
      assert.equal(new Set(sent.map(({ key }) => key)).size, 1);
      keys.add(sent[0]!.key!);
    });
  }
  await step("the next action has another key", () => {
    assert.equal(keys.size, ACTIONS.length);
    return Promise.resolve();
  });
});

consoleCase("a dialog that is opened again keeps its idempotency key", async (step, place) => {
  const { make, count } = place;
  const payment = await make("payments", { amount: 5000, currency: "EUR", outcome: "success" });
  const { page, dialog, said, press, submit, see } = await place.enter(`#/payments/${payment}`);
  const refund = async () => {
    await press("Refund…");
    await submit({ "Amount in EUR": "10.00" }, "Refund");
  };
  const refunds = () => count(`refunds?payment_id=${payment}`);
  await step("the response to a refund is lost", async () => {
    await page.route("**/refund", async (route) => {
      await route.fetch();
      await route.abort();
    });
    await refund();
    await see("The API cannot be reached.");
    await press("Cancel");
    await page.unroute("**/refund");
  });
  await step("the same refund from a new dialog gets the stored response", async () => {
    await refund();
    await said().waitFor();
    assert.equal(await refunds(), 1);
  });
  await step("the next refund is another one", async () => {
    await refund();
    await dialog().waitFor({ state: "detached" });
    assert.equal(await refunds(), 2);
  });
});

consoleCase("a form sends a fault of one request", async (step, { enter, count }) => {
  const { page, said, press, fill, submit, fault, field, fresh } = await enter();
  const open = async (name: string) => {
    await fresh("payments/new");
    await page.getByText("Idempotency and faults").click();
    await fill({ "Fault of this request": name });
  };
  await step("429, and the retry pays", async () => {
    await open("rate_limited");
    await press("Create payment");
    await said("Payment created: completed.").waitFor();
    await said("Fault “Rate limited”: attempt 1 got 429, attempt 2 got 201.").waitFor();
    assert.equal(await count("payments"), 1);
  });
  await step("a lost response, and the retry gets the stored one", async () => {
    await open("connection_lost_after");
    await press("Create payment");
    await said(/attempt 1 got no response, attempt 2 got 201\./).waitFor();
    assert.equal(await count("payments"), 2);
  });
  await step("sent twice, only the first request has the fault", async () => {
    await open("server_error_before");
    await field("Send the request twice, with one key").check();
    await press("Create payment");
    await said(/attempt 1 got 500, attempt 2 got 201\. Sent twice: .*byte for byte/).waitFor();
    assert.equal(await count("payments"), 3);
  });
  await step("a delay that the API refuses, at its field", async () => {
    await open("delay");
    await submit({ "Delay in milliseconds": "10001" }, "Create payment");
    await fault(/must be 1 to 10000 milliseconds/).first().waitFor();
    const begun = Date.now();
    await submit({ "Delay in milliseconds": "600" }, "Create payment");
    await said("Fault “Delay”: attempt 1 got 201.").waitFor();
    assert.ok(Date.now() - begun >= 600);
  });
  await step("a closed part sends no fault", async () => {
    await open("rate_limited");
    await page.getByText("Idempotency and faults").click();
    await press("Create payment");
    await said("Payment created: completed.").waitFor();
    assert.equal(await said("Fault").count(), 0);
  });
});
