/**
 * Failures in the console: an error appears at its field, the form keeps its input, and no request
 * has an effect twice.
 */

import assert from "node:assert/strict";
import { consoleCase, moveClock, pasteKey } from "../support/console/console_case.ts";

/** The input of a field, and the error that must appear at it. */
const FIELD_FAULTS: [instrument: string, label: string, typed: string, fault: RegExp][] = [
  ["Test card", "Amount", "0", /invalid_parameter/],
  ["Test card", "Amount", "1.999", /too many decimals/],
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
      // The form focuses the field after the browser has painted the error.
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
// deno-lint-ignore no-explicit-any
const nameOf = (field: any): string => field.labels[0].firstChild.textContent;

consoleCase("a lost response is shown, keeps the input, and pays once", async (step, place) => {
  const { count } = place;
  const { page, submit, press, see, field, heading } = await place.enter("#/payments/new");
  const keys: (string | null)[] = [];
  /** Answers the creates in this way, and keeps their idempotency keys. */
  const answer = async (
    respond: (route: Parameters<Parameters<typeof page.route>[1]>[0]) => unknown,
  ) => {
    await page.unroute("**/v1/payments");
    await page.route("**/v1/payments", async (route) => {
      if (route.request().method() !== "POST") return route.continue();
      keys.push(await route.request().headerValue("idempotency-key"));
      await respond(route);
    });
  };

  await step("the response is lost: the page says so and keeps the input", async () => {
    await answer(async (route) => {
      // The request arrives and has its effect. Only its response is lost.
      await route.fetch();
      await route.abort("connectionreset");
    });
    const typed = { Amount: "77.70", Description: "typed with care" };
    await submit(typed, "Create payment", "The API cannot be reached.");
    await see("Nothing that you typed is lost.");
    assert.equal(await field("Amount").inputValue(), "77.70");
    assert.equal(await field(/^Description/).inputValue(), "typed with care");
  });
  const TURNED_AWAY = [[409, "idempotency_in_progress"], [429, "rate_limited"]] as const;
  for (const [status, code] of TURNED_AWAY) {
    await step(`${code} does not settle the first attempt: the idempotency key stays`, async () => {
      await answer((route) =>
        route.fulfill({
          status,
          // Longer than the client waits.
          headers: { "Retry-After": "61" },
          json: { error: { type: "api", code, message: "Not now", request_id: "req_1" } },
        })
      );
      await press("Create payment");
      await page.getByRole("alert").getByText(code).waitFor();
    });
  }
  await step("a second click sends the same key: one payment", async () => {
    await answer((route) => route.continue());
    await press("Create payment");
    await heading("77.70 EUR").waitFor();
    assert.ok(keys.length >= 4 && keys[0] !== null);
    assert.equal(new Set(keys).size, 1);
    assert.equal(await count("payments"), 1);
    await page.unroute("**/v1/payments");
  });
  await step("the next payment has a new key", async () => {
    await page.goBack();
    await heading("Create a payment").waitFor();
    await press("Create payment");
    await heading("19.99 EUR").waitFor();
    assert.equal(await count("payments"), 2);
  });
  await step("while the API is unavailable the page keeps its data and retries", async () => {
    await page.context().setOffline(true);
    await see("The API cannot be reached.");
    await heading("19.99 EUR").waitFor();
    await page.context().setOffline(false);
    await page.getByText("The API cannot be reached.").first().waitFor({ state: "detached" });
  });
});

consoleCase("polling stops in a hidden tab and follows Retry-After", async (step, place) => {
  const { page, requests, see } = await place.open("#/payments");
  await page.clock.install();
  await pasteKey(page, place.start.test_key);
  await see("No payments yet");
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
    const error = {
      type: "rate_limit",
      code: "rate_limited",
      message: "Too many",
      request_id: "r",
    };
    await page.route("**/v1/payments?*", (route) => {
      limited++;
      return route.fulfill({ status: 429, headers: { "Retry-After": "60" }, json: { error } });
    });
    await see("rate_limited");
    await moveClock(page, 50_000);
    assert.equal(limited, 1);
    await page.unroute("**/v1/payments?*");
    await moveClock(page, 12_000);
    await page.getByText("rate_limited").waitFor({ state: "detached" });
  });
});

consoleCase("an invalid key leads to the page for the key", async (step, place) => {
  const { start, send } = place;
  const key = await send("POST", "api_keys", { name: "short" });
  const { page, see, heading, link } = await place.open("#/balance");
  await step("a key that is revoked while the console is open", async () => {
    await pasteKey(page, key.secret);
    await heading("Balance").waitFor();
    assert.equal(
      (await start.call("DELETE", `/api-v1-payments/v1/api_keys/${key.id}`)).status,
      200,
    );
    await heading("Open your sandbox").waitFor();
    await page.getByRole("alert").getByText("unauthorized").waitFor();
  });
  await step("a key without a scope: the error appears where the scope is needed", async () => {
    const few = await send("POST", "api_keys", { name: "few", scopes: ["payments:read"] });
    await pasteKey(page, few.secret);
    await see("permission_denied");
    await link("Payments").click();
    await see("No payments yet");
  });
});
