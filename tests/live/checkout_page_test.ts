/** The payer's page of a live checkout: each attempt is a live payment, sent once. */

import assert from "node:assert/strict";
import { liveCase } from "../support/live/live_case.ts";
import { assertBalanced } from "../support/live/live_books.ts";

const PAGE = "/api-v1-payments/checkout";
const publishable_key = "pk_live_51Page";

liveCase("POST /checkout/payments with a live token", async (given, t) => {
  const { service } = given;
  await service.sql`
    update pay.provider_accounts set settings = settings || ${
    service.sql.json({ publishable_key })
  }`;
  const made = await given.call("POST", "/checkouts", {
    body: { amount: 1999, currency: "EUR", methods: ["card"] },
  });
  const token: string = made.body.url.split("#")[1];
  const pay = async (name: string, idempotency_key: string) => {
    const { text, body } = await service.call("POST", `${PAGE}/payments`, {
      ...{ key: null, unchecked: true, headers: { "Checkout-Token": token }, idempotency_key },
      body: { card: { token: `pm_card_${name}` } },
    });
    assert.ok(body.attempt, text);
    return body;
  };
  await t.step("a decline, and 3-D Secure", async () => {
    const declined = await pay("chargeDeclined", "one");
    assert.deepEqual([declined.status, declined.attempt.status], ["open", "declined"]);
    const { attempt } = await pay("authenticationRequired", "two");
    assert.deepEqual([attempt.status, attempt.next_action.type], [
      ...["requires_action", "authenticate"],
    ]);
  });
  await t.step("one that pays, sent again: one charge", async () => {
    const pages = [await pay("visa", "three"), await pay("visa", "three")];
    for (const { livemode, status, attempt, ...page } of pages) {
      assert.deepEqual([livemode, status, attempt.status], [true, "completed", "completed"]);
      assert.equal(page.publishable_key, publishable_key);
    }
    const paid = (await given.books()).charge.filter(({ status }) => status === "succeeded");
    assert.equal(paid.length, 1);
    await assertBalanced(given);
  });
}, { checkout_url: "https://pay.example.com" });
