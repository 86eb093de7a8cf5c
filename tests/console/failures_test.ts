/**
 * Failures in the console: an error appears at its field, the form keeps its input, and no request
 * has an effect twice.
 */

import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import { consoleCase, moveClock, pasteKey } from "../support/console/console_case.ts";

const PAYMENTS = "/api-v1-payments/v1/payments";
const submit = (page: Page) => page.getByRole("button", { name: "Create payment" }).click();
const count = (body: unknown) => (body as { data: unknown[] }).data.length;

/** The input of a field, and the error that must appear at it. */
const FIELD_FAULTS: [instrument: string, label: string | RegExp, typed: string, fault: RegExp][] = [
  ["Test card", "Amount", "0", /invalid_parameter/],
  ["Test card", "Amount", "1.999", /too many decimals/],
  ["Test card", "Amount", "", /Enter an amount/],
  ["Test card", "Currency", "EURO", /invalid_parameter/],
  ["Test card", "Card number", "4242 4242 4242 4241", /Use a test card number.*invalid_parameter/],
  ["Test card", "Month", "13", /invalid_parameter/],
  ["Test card", "Year", "soon", /Enter a whole number/],
  ["Test card", "CVC", "12", /invalid_parameter/],
  ["Test card", /^Customer’s e-mail/, "nobody", /invalid_parameter/],
  ["Test card", /^Description/, "x".repeat(501), /invalid_parameter/],
  ["Test card", /^Reference/, "x".repeat(256), /invalid_parameter/],
  ["Test card", /^Return URL/, "http://shop.example", /must begin with https.*invalid_parameter/],
  ["Card token", "Token", "tok_visa", /begins with "pm_".*invalid_parameter/],
  ["IBAN", "IBAN", "DE00 1234", /not an IBAN.*invalid_parameter/],
  ["Wallet", "Address", "0x0000000000000000000000000000000000000000", /invalid_parameter/],
];

consoleCase("an API error appears at its field, with its code", async (step, { enter, start }) => {
  const { page } = await enter("#/payments");
  const base = page.url().replace(/#.*/, "");
  for (const [index, [instrument, label, typed, fault]] of FIELD_FAULTS.entries()) {
    const variant = index % 2 === 0 ? "A" : "B";
    await step(`${label} "${typed.slice(0, 20)}" in variant ${variant}`, async () => {
      // Opens a new, empty form.
      await page.goto(`${base}#/payments`);
      await page.getByRole("heading", { name: "Payments" }).waitFor();
      await page.goto(`${base}#/payments/new`);
      await page.getByRole("radio", { name: instrument, exact: true }).check();
      await page.getByRole("radio", { name: new RegExp(`^${variant} `) }).check();
      const field = label === "IBAN"
        ? page.getByRole("textbox", { name: "IBAN" })
        : page.getByLabel(label, { exact: typeof label === "string" });
      await field.fill(typed);
      await submit(page);
      await page.locator(".fault").waitFor();
      assert.equal(await field.getAttribute("aria-invalid"), "true");
      const described = (await field.getAttribute("aria-describedby"))!.split(" ")[0]!;
      assert.match(await page.locator(`[id="${described}"]`).innerText(), fault);
      assert.equal(await field.inputValue(), typed);
      // The form focuses the field after the browser has painted the error.
      await page.locator('[aria-invalid="true"]:focus').waitFor();
    });
  }
  await step("a refund above the rest: at the amount", async () => {
    const { body } = await start.call("POST", PAYMENTS, {
      amount: 500,
      outcome: "success",
      currency: "EUR",
    });
    await page.goto(`${base}#/payments/${(body as { id: string }).id}`);
    await page.getByRole("button", { name: "Refund…" }).click();
    await page.getByLabel("Amount in EUR").fill("5.01");
    await page.getByRole("button", { name: "Refund", exact: true }).click();
    await page.getByRole("dialog").locator(".fault").getByText("invalid_parameter").waitFor();
    assert.equal(await page.getByLabel("Amount in EUR").inputValue(), "5.01");
    await page.keyboard.press("Escape");
  });
  await step("an endpoint: at its URL and at its events", async () => {
    await page.goto(`${base}#/webhooks/new`);
    await page.getByLabel("URL").fill("ftp://example.com");
    await page.getByRole("button", { name: "Add endpoint" }).click();
    await page.locator(".fault").getByText("invalid_parameter").waitFor();
    await page.getByLabel("URL").fill("http://127.0.0.1:4343/");
    await page.getByRole("radio", { name: "Chosen events" }).check();
    await page.getByRole("checkbox", { name: "payment.completed" }).uncheck();
    await page.getByRole("button", { name: "Add endpoint" }).click();
    await page.locator(".boxes .fault").getByText("invalid_parameter").waitFor();
  });
  await step("a move that another client has made impossible", async () => {
    const { body } = await start.call("POST", PAYMENTS, { amount: 500, currency: "EUR" });
    const { id } = body as { id: string };
    await page.goto(`${base}#/payments/${id}`);
    await page.getByRole("button", { name: "Cancel payment" }).waitFor();
    await page.route("**/cancel", async (route) => {
      await start.call("POST", `${PAYMENTS}/${id}/cancel`);
      await route.continue();
    });
    await page.getByRole("button", { name: "Cancel payment…" }).click();
    await page.getByRole("button", { name: "Cancel payment", exact: true }).click();
    await page.locator(".under-title").getByText("Cancelled").waitFor();
  });
});

consoleCase("a lost response is shown, keeps the input, and pays once", async (step, place) => {
  const { start } = place;
  const { page } = await place.enter("#/payments/new");
  await page.getByLabel("Amount", { exact: true }).fill("77.70");
  await page.getByLabel(/^Description/).fill("typed with care");
  const keys: (string | null)[] = [];

  await step(
    "the response is lost on the way: the page says so and keeps the input",
    async () => {
      await page.route("**/v1/payments", async (route) => {
        if (route.request().method() !== "POST") return route.continue();
        keys.push(await route.request().headerValue("idempotency-key"));
        // The request arrives and has its effect. Only its response is lost.
        await route.fetch();
        await route.abort("connectionreset");
      });
      await submit(page);
      await page.getByText("The API cannot be reached.").waitFor();
      await page.getByText("Nothing that you typed is lost.").waitFor();
      assert.equal(await page.getByLabel("Amount", { exact: true }).inputValue(), "77.70");
      assert.equal(await page.getByLabel(/^Description/).inputValue(), "typed with care");
    },
  );
  const TURNED_AWAY = [[409, "idempotency_in_progress"], [429, "rate_limited"]] as const;
  for (const [status, code] of TURNED_AWAY) {
    await step(`${code} does not settle the first attempt: the idempotency key stays`, async () => {
      await page.unroute("**/v1/payments");
      await page.route("**/v1/payments", async (route) => {
        if (route.request().method() !== "POST") return route.continue();
        keys.push(await route.request().headerValue("idempotency-key"));
        await route.fulfill({
          status,
          // Longer than the client waits.
          headers: { "Retry-After": "61" },
          json: { error: { type: "api", code, message: "Not now", request_id: "req_1" } },
        });
      });
      await submit(page);
      await page.getByRole("alert").getByText(code).waitFor();
    });
  }
  await step("a second click sends the same key: one payment", async () => {
    await page.unroute("**/v1/payments");
    const sent = page.waitForRequest((request) => request.method() === "POST");
    await submit(page);
    keys.push(await (await sent).headerValue("idempotency-key"));
    await page.getByRole("heading", { name: "77.70 EUR" }).waitFor();
    assert.ok(keys.length >= 4 && keys[0] !== null);
    assert.equal(new Set(keys).size, 1);
    assert.equal(count((await start.call("GET", PAYMENTS)).body), 1);
  });
  await step("the next payment has a new key", async () => {
    await page.goBack();
    await page.getByRole("heading", { name: "Create a payment" }).waitFor();
    await submit(page);
    await page.getByRole("heading", { name: "19.99 EUR" }).waitFor();
    assert.equal(count((await start.call("GET", PAYMENTS)).body), 2);
  });
  await step(
    "while the API is unavailable the page keeps its data and says that it retries",
    async () => {
      await page.context().setOffline(true);
      await page.getByText("The API cannot be reached.").first().waitFor();
      await page.getByRole("heading", { name: "19.99 EUR" }).waitFor();
      await page.context().setOffline(false);
      await page.getByText("The API cannot be reached.").first().waitFor({ state: "detached" });
    },
  );
});

consoleCase("polling stops in a hidden tab and follows Retry-After", async (step, place) => {
  const { page, requests } = await place.open("#/payments");
  await page.clock.install();
  await pasteKey(page, place.start.test_key);
  await page.getByText("No payments yet").waitFor();
  const hide = (hidden: boolean) =>
    page.evaluate((hidden) => {
      // deno-lint-ignore no-explicit-any
      const { document, Event } = globalThis as any;
      Object.defineProperty(document, "hidden", { configurable: true, value: hidden });
      document.dispatchEvent(new Event("visibilitychange"));
    }, hidden);

  await step("a list sends a request every two seconds", async () => {
    const lists = () => requests.filter((url) => url.includes("/payments?")).length;
    const before = lists();
    await page.waitForTimeout(4_500);
    const made = lists() - before;
    assert.ok(made >= 1 && made <= 3, `${made} requests in 4.5 s`);
  });
  await step("a hidden tab sends none, and one at once when it is visible again", async () => {
    await hide(true);
    await page.waitForTimeout(300);
    const before = requests.length;
    await moveClock(page, 60_000);
    assert.equal(requests.length - before, 0);
    const next = page.waitForRequest(() => true, { timeout: 1_000 });
    await hide(false);
    await next;
  });
  await step("after a 429 it waits for the Retry-After", async () => {
    let limited = 0;
    await page.route("**/v1/payments?*", (route) => {
      limited++;
      return route.fulfill({
        status: 429,
        headers: { "Retry-After": "60", "Content-Type": "application/json" },
        body: JSON.stringify({
          error: {
            type: "rate_limit",
            code: "rate_limited",
            message: "Too many requests",
            request_id: "req_1",
          },
        }),
      });
    });
    await page.getByText("rate_limited").waitFor();
    await moveClock(page, 50_000);
    assert.equal(limited, 1);
    await page.unroute("**/v1/payments?*");
    await moveClock(page, 12_000);
    await page.getByText("rate_limited").waitFor({ state: "detached" });
  });
});

consoleCase("an invalid key leads to the page for the key", async (step, place) => {
  const { start } = place;
  const made = await start.call("POST", "/api-v1-payments/v1/api_keys", { name: "short" });
  const key = made.body as { id: string; secret: string };
  const { page } = await place.open("#/balance");
  await step("a key that is revoked while the console is open", async () => {
    await page.getByLabel("Test key").last().fill(key.secret);
    await page.getByRole("button", { name: "Open the sandbox" }).click();
    await page.getByRole("heading", { name: "Balance" }).waitFor();
    const response = await fetch(`${start.base_url}/api-v1-payments/v1/api_keys/${key.id}`, {
      method: "DELETE",
      headers: { Authorization: `Bearer ${start.test_key}` },
    });
    assert.equal(response.status, 200, await response.text());
    await page.getByRole("heading", { name: "Open your sandbox" }).waitFor();
    await page.getByRole("alert").getByText("unauthorized").waitFor();
  });
  await step("a key without a scope: the error appears where the scope is needed", async () => {
    const { body } = await start.call("POST", "/api-v1-payments/v1/api_keys", {
      name: "few",
      scopes: ["payments:read"],
    });
    await page.getByLabel("Test key").last().fill((body as { secret: string }).secret);
    await page.getByRole("button", { name: "Open the sandbox" }).click();
    await page.getByText("permission_denied").waitFor();
    await page.getByRole("link", { name: "Payments", exact: true }).click();
    await page.getByText("No payments yet").waitFor();
  });
});
