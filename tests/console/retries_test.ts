/**
 * Retries of the console: a button that is pressed again after a lost response has the same
 * idempotency key, and a form can send a fault of one request.
 */

import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import { consoleCase } from "../support/console/console_case.ts";

const V1 = "/api-v1-payments/v1";
/** Attempts that the client makes before it gives up. */
const ATTEMPTS = 3;

const said = (page: Page) => page.locator("[aria-live] .notice");

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
  const { start, origin } = place;
  const make = async (path: string, body: unknown) =>
    ((await start.call("POST", path, body)).body as { id: string }).id;
  const webhooks = await make(`${V1}/webhook_endpoints`, { url: "http://127.0.0.1:4343/" });
  const payments = await make(`${V1}/payments`, {
    amount: 500,
    currency: "EUR",
    outcome: "success",
  });
  const ids = { webhooks, payments };
  const { page } = await place.enter();
  const sent: { path: string; key: string | undefined }[] = [];
  page.on("request", (request) => {
    if (request.method() !== "POST" && request.method() !== "PUT") return;
    const { pathname: path } = new URL(request.url());
    sent.push({ path, key: request.headers()["idempotency-key"] });
  });
  const keys = new Set<string>();
  for (const [name, section, path] of ACTIONS) {
    await step(`${name}: one key until the API has decided`, async () => {
      await page.goto(`${origin}/console/#/${section}/${ids[section]}`);
      const button = page.getByRole("button", { name }).first();
      await button.waitFor();
      await make("/api-v1-sandbox/faults", {
        on: "request",
        fault: "server_error_before",
        times: ATTEMPTS,
        where: { method: name === "Disable" ? "PUT" : "POST" },
      });
      sent.length = 0;
      await button.click();
      await page.getByRole("alert").waitFor();
      assert.equal(sent.length, ATTEMPTS);
      await button.click();
      await said(page).waitFor();
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
  const { start, enter } = place;
  const body = { amount: 5000, currency: "EUR", outcome: "success" };
  const payment = (await start.call("POST", `${V1}/payments`, body)).body as { id: string };
  const { page } = await enter(`#/payments/${payment.id}`);
  const dialog = page.getByRole("dialog");
  const refund = async () => {
    await page.getByRole("button", { name: "Refund…" }).click();
    await dialog.getByLabel(/^Amount/).fill("10.00");
    await dialog.getByRole("button", { name: "Refund", exact: true }).click();
  };
  await step("the response to a refund is lost", async () => {
    await page.route("**/refund", async (route) => {
      await route.fetch();
      await route.abort();
    });
    await refund();
    await dialog.getByText("The API cannot be reached.").waitFor();
    await dialog.getByRole("button", { name: "Cancel" }).click();
    await page.unroute("**/refund");
  });
  await step("the same refund from a new dialog gets the stored response", async () => {
    await refund();
    await said(page).waitFor();
    assert.equal(await refunds(), 1);
  });
  await step("the next refund is another one", async () => {
    await refund();
    await dialog.waitFor({ state: "detached" });
    assert.equal(await refunds(), 2);
  });
  async function refunds(): Promise<number> {
    const path = `${V1}/refunds?payment_id=${payment.id}`;
    return ((await start.call("GET", path)).body as { data: unknown[] }).data.length;
  }
});

consoleCase("a form sends a fault of one request", async (step, { enter, start }) => {
  const { page } = await enter("#/payments/new");
  const submit = () => page.getByRole("button", { name: "Create payment" }).click();
  const count = async () =>
    ((await start.call("GET", `${V1}/payments`)).body as { data: unknown[] }).data.length;
  const fresh = async (fault: string) => {
    await page.goto(page.url().replace(/#.*/, "#/balance"));
    await page.getByRole("heading", { name: "Balance", level: 1 }).waitFor();
    await page.goto(page.url().replace(/#.*/, "#/payments/new"));
    await page.getByText("Idempotency and faults").click();
    await page.getByLabel(/^Fault of this request/).selectOption(fault);
  };
  await step("429, and the retry pays", async () => {
    await fresh("rate_limited");
    await submit();
    await said(page).getByText("Payment created: completed.").waitFor();
    await said(page).getByText("Fault “Rate limited”: attempt 1 got 429, attempt 2 got 201.")
      .waitFor();
    assert.equal(await count(), 1);
  });
  await step("a lost response, and the retry gets the stored one", async () => {
    await fresh("connection_lost_after");
    await submit();
    await said(page).getByText(/attempt 1 got no response, attempt 2 got 201\./).waitFor();
    assert.equal(await count(), 2);
  });
  await step("sent twice, only the first request has the fault", async () => {
    await fresh("server_error_before");
    await page.getByLabel("Send the request twice, with one key").check();
    await submit();
    await said(page).getByText(/attempt 1 got 500, attempt 2 got 201\. Sent twice: .*byte for byte/)
      .waitFor();
    assert.equal(await count(), 3);
  });
  await step("a delay that the API refuses, at its field", async () => {
    await fresh("delay");
    await page.getByLabel("Delay in milliseconds").fill("10001");
    await submit();
    await page.locator(".fault").getByText(/must be 1 to 10000 milliseconds/).first().waitFor();
    await page.getByLabel("Delay in milliseconds").fill("600");
    const begun = Date.now();
    await submit();
    await said(page).getByText("Fault “Delay”: attempt 1 got 201.").waitFor();
    assert.ok(Date.now() - begun >= 600);
  });
  await step("a closed part sends no fault", async () => {
    await fresh("rate_limited");
    await page.getByText("Idempotency and faults").click();
    await submit();
    await said(page).getByText("Payment created: completed.").waitFor();
    assert.equal(await said(page).getByText("Fault").count(), 0);
  });
});
