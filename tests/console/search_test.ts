/**
 * The search field, the pages of requests and events, and "Send again": an id opens its page, a part
 * of a text lists matches, and a request is repeated with the same key or with a new one.
 */

import assert from "node:assert/strict";
import { consoleCase } from "../support/console/console_case.ts";

const PAYMENTS = "/api-v1-payments/v1/payments";

consoleCase(
  "what is searched is found, and sent again",
  async (step, { enter, start, make, send, count }) => {
    const response = await fetch(`${start.base_url}${PAYMENTS}`, {
      method: "POST",
      headers: {
        Authorization: `Bearer ${start.test_key}`,
        "Content-Type": "application/json",
        "Idempotency-Key": "order-1001",
      },
      body: JSON.stringify({
        amount: 1999,
        currency: "EUR",
        reference: "order-1001",
        customer: { email: "grace@example.com" },
        card: { number: "4242 4242 4242 4242", exp_month: 12, exp_year: 2034, cvc: "123" },
      }),
    });
    const { id } = await response.json() as { id: string };
    const request_id = response.headers.get("Request-Id")!;
    const { page, link, region, radio, heading, status, see, press } = await enter();
    const field = page.getByRole("searchbox", { name: "Search" });
    const search = async (text: string) => {
      await page.getByRole("heading", { level: 1 }).focus();
      await page.keyboard.press("/");
      await page.locator('[aria-label="Search"]:focus').waitFor();
      await page.keyboard.insertText(text);
      await page.keyboard.press("Enter");
    };

    await step("the title names the page", async () => {
      assert.equal(await page.title(), "Home · Sandbox");
    });
    await step("a part of an e-mail address lists the payment", async () => {
      await search("GRACE@ex");
      await region("Payments").getByText("order-1001").waitFor();
      assert.equal(await field.inputValue(), "GRACE@ex");
      assert.equal(await page.title(), "Search for GRACE@ex · Sandbox");
    });
    await step("an id opens its page, and a slash in a field is text", async () => {
      await field.fill(` ${id} `);
      await field.press("Enter");
      await heading("19.99 EUR").waitFor();
      assert.equal(await page.title(), `Payment …${id.slice(-6)} · Sandbox`);
      await field.focus();
      await page.keyboard.type("a/b");
      assert.equal(await field.inputValue(), "a/b");
    });
    await step("a request shows its masked body and its events", async () => {
      await search(request_id);
      const body = region("Request body as JSON");
      assert.match(await body.innerText(), /"number": "…"[\s\S]*"cvc": "…"/);
      await region("Events").getByText("payment.completed").waitFor();
      await page.getByRole("tab", { name: "Python" }).click();
      assert.match(await page.getByRole("tabpanel").innerText(), /"Idempotency-Key": "order-1001"/);
    });
    await step("sent again with the same key it is a replay", async () => {
      await press("Send again…");
      assert.match(
        await page.getByRole("textbox", { name: "Body" }).inputValue(),
        /4242 4242 4242 4242/,
      );
      await press("Send");
      await see("Nothing happened twice.");
      await status("replay").waitFor();
      assert.equal(await count("payments"), 1);
    });
    await step("sent again with a new key it is a new payment", async () => {
      await press("Send again…");
      await radio("A new key").check();
      await press("Send");
      await see("Sent again: 201.");
      await region("Events").getByText("payment.created").waitFor();
      assert.equal(await count("payments"), 2);
    });
    await step("an event tells what changed since the one before", async () => {
      await make(`payments/${id}/refund`, { amount: 500 });
      const { data } = await send("GET", `events?payment_id=${id}`);
      const { id: event } = data.find(({ type }: { type: string }) =>
        type === "payment.partially_refunded"
      );
      await search(event);
      const changes = page.getByRole("table", { name: "What changed" });
      await changes.waitFor();
      assert.deepEqual(
        (await changes.locator("tbody tr").allInnerTexts()).map((row) => row.split(/\s+/)),
        [["status", "completed", "partially_refunded"], ["amount_refunded", "0", "500"]],
      );
      await link("payment.completed").click();
      await heading("payment.completed").waitFor();
    });
  },
);
