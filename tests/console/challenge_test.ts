/**
 * The payer's page of 3-D Secure: `next_action.url` opens it, Approve and Fail settle the payment,
 * and the payer comes back to the shop. The page needs no key.
 */

import assert from "node:assert/strict";
import type { Payment } from "../../packages/client/mod.ts";
import { consoleCase } from "../support/console/console_case.ts";
import { look } from "../support/console/look.ts";
import { until } from "../support/common/until.ts";

const SECURE = { number: "4000002500003155", exp_month: 12, exp_year: 2034, cvc: "123" };

/** A shop on loopback: the page to return to, and the receiver of webhooks. */
function openShop() {
  const webhooks: { type: string; data: { object: Payment } }[] = [];
  const server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    async (request) => {
      if (request.method === "POST") {
        webhooks.push(await request.json());
        return new Response(null, { status: 204 });
      }
      const headers = { "Content-Type": "text/html" };
      return new Response("<!doctype html><title>Shop</title><h1>Thank you</h1>", { headers });
    },
  );
  const origin = `http://127.0.0.1:${server.addr.port}`;
  return { origin, webhooks, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
}

consoleCase("the payer completes 3-D Secure on a page", async (step, place) => {
  const { open, enter, start, send } = place;
  await using shop = openShop();
  await send("POST", "webhook_endpoints", {
    url: `${shop.origin}/webhooks`,
    events: ["payment.completed", "payment.declined"],
  });
  const pay = async (more: Record<string, unknown> = {}) => {
    const order = { amount: 123_456, currency: "EUR", reference: "Order 6735", card: SECURE };
    const payment: Payment = await send("POST", "payments", { ...order, ...more });
    assert.equal(payment.next_action?.type, "authenticate");
    return { id: payment.id, url: payment.next_action.url };
  };
  const read = (id: string): Promise<Payment> => send("GET", `payments/${id}`);
  const heard = (type: string, id: string) =>
    until(
      `the webhook ${type}`,
      () => shop.webhooks.some((event) => event.type === type && event.data.object.id === id),
    );
  const visit = async (url: string, asks = "Approve this payment?") => {
    const opened = await open("", { url });
    await opened.heading(asks).waitFor();
    return opened;
  };
  const back_url = `${shop.origin}/return?order=6735#thanks`;

  await step("Approve: back at the shop with payment_id, completed, webhook", async () => {
    const { id, url } = await pay({ return_url: back_url });
    const { page, requests, heading, link, press } = await visit(url);
    for (const text of ["1,234.56 EUR", "demo", "Order 6735", "Visa ···· 3155", id]) {
      assert.ok((await page.getByRole("main").innerText()).includes(text), text);
    }
    assert.deepEqual(await look(page, "challenge-asking"), []);
    await press("Approve");
    await page.waitForURL(`${shop.origin}/return?order=6735&payment_id=${id}#thanks`);
    await heading("Thank you").waitFor();
    assert.equal((await read(id)).status, "completed");
    await heard("payment.completed", id);
    assert.ok(!requests.some((request) => request.includes(start.test_key)));

    // The page is not in the history: a payer who goes back does not approve twice.
    await page.goBack();
    assert.ok(!page.url().includes("challenge"), page.url());
    await page.goto(url);
    await heading("The payment is approved").waitFor();
    assert.equal(
      await link("Back to the shop").getAttribute("href"),
      `${shop.origin}/return?order=6735&payment_id=${id}#thanks`,
    );
    assert.equal(await page.getByRole("button").count(), 0);
    assert.deepEqual(await look(page, "challenge-over"), []);
  });

  await step("Fail: back at the shop, declined, webhook", async () => {
    const { id, url } = await pay({ return_url: `${shop.origin}/return` });
    const { page } = await visit(url);
    await page.getByRole("button", { name: "Fail" }).click();
    await page.waitForURL(`${shop.origin}/return?payment_id=${id}`);
    const { status, failure_code } = await read(id);
    assert.deepEqual([status, failure_code], ["declined", "authentication_failed"]);
    await heard("payment.declined", id);
  });

  await step("a card that is saved without a charge: back at the shop, active", async () => {
    const customer = { id: "user-7", email: "ada@example.com" };
    const save = { amount: 0, save: "off_session", customer };
    const { id, url } = await pay({ ...save, return_url: `${shop.origin}/return` });
    const { page, heading } = await visit(url, "Save this card?");
    assert.deepEqual(await look(page, "challenge-save"), []);
    await page.getByRole("button", { name: "Approve" }).click();
    await page.waitForURL(`${shop.origin}/return?payment_id=${id}`);
    const { instrument_id } = await read(id);
    assert.equal((await send("GET", `instruments/${instrument_id}`)).status, "active");
    await page.goto(url);
    await heading("The card is saved").waitFor();
  });

  await step("by keyboard alone, without a return URL: close the window", async () => {
    const { id, url } = await pay({ capture: "manual" });
    const { page } = await visit(url);
    await page.getByRole("heading").and(page.locator(":focus")).waitFor();
    for (const name of ["Approve", "Fail"]) {
      await page.keyboard.press("Tab");
      await page.getByRole("button", { name }).and(page.locator(":focus-visible")).waitFor();
    }
    await page.keyboard.press("Shift+Tab");
    await page.keyboard.press("Enter");
    await page.getByText("You can close this window.").waitFor();
    await page.getByRole("heading", { name: "The payment is approved" })
      .and(page.locator(":focus")).waitFor();
    assert.equal((await read(id)).status, "authorized");
    assert.deepEqual(await look(page, "challenge-completed"), []);
  });

  await step("a payment that ends meanwhile: the page shows its end", async () => {
    const { id, url } = await pay();
    const { page } = await visit(url);
    await send("POST", `payments/${id}/cancel`);
    await page.getByRole("button", { name: "Approve" }).click();
    await page.getByRole("heading", { name: "The payment is cancelled" }).waitFor();
    assert.equal((await read(id)).status, "cancelled");
  });

  await step("a link with another token leads to no payment", async () => {
    const { url } = await pay();
    const { page } = await open("", { url: `${url.slice(0, -2)}zz` });
    await page.getByRole("heading", { name: "This link leads to no payment" }).waitFor();
    assert.equal(await page.getByRole("button").count(), 0);
    assert.deepEqual(await look(page, "challenge-unknown"), []);
  });

  await step("the console's page of a payment links to the payer's page", async () => {
    const { id, url } = await pay();
    const { page } = await enter(`#/payments/${id}`);
    const link = page.getByRole("link", { name: "Open the payer’s page" });
    assert.equal(await link.getAttribute("href"), url);
    const [opened] = await Promise.all([page.waitForEvent("popup"), link.click()]);
    await opened.getByRole("button", { name: "Approve" }).click();
    await opened.getByText("You can close this window.").waitFor();
    await page.locator(".under-title").getByText("Completed").waitFor();
    await opened.close();
  });
});
