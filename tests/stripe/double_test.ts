/** The double of Stripe on a real localstripe: payments, refunds, disputes, payouts and lists. */

import assert from "node:assert/strict";
import { doubleTest, idsOf } from "../support/stripe/double_case.ts";
import type { StripeObject } from "../support/stripe/journal.ts";
import { callStripe, CARD_FORM } from "../support/stripe/stripe_call.ts";

const EXPAND = { "expand[]": "latest_charge.balance_transaction" };

doubleTest("create charges the card, and shows the fee", async ({ create, get, books }) => {
  const { status, body } = await create({ ...EXPAND, "metadata[payment]": "pay_1" });
  assert.equal(status, 200);
  assert.equal(body.status, "succeeded");
  assert.equal(body.metadata.payment, "pay_1");
  const { fee, net } = body.latest_charge.balance_transaction;
  assert.deepEqual([fee, net], [41, 1058]);
  const shown = await get(`payment_intents/${body.id}?expand[]=latest_charge.balance_transaction`);
  assert.deepEqual(shown.body, body);
  assert.ok(!Object.keys(body).some((name) => name.startsWith("_")));
  const { event } = await books();
  assert.deepEqual(event.map(({ type }) => type), [
    "payment_intent.created",
    "charge.succeeded",
    "payment_intent.succeeded",
  ]);
});

doubleTest("create with automatic_async shows the fee later", async ({ create, get, books }) => {
  const { body } = await create({ ...EXPAND, capture_method: "automatic_async" });
  assert.equal(body.latest_charge.balance_transaction, null);
  const { body: charge } = await get(`charges/${body.latest_charge.id}`);
  assert.match(charge.balance_transaction, /^txn_/);
  assert.equal((await books()).event.at(-1)!.type, "charge.updated");
});

for (
  const [token, code, decline_code] of [
    ["pm_card_chargeDeclined", "card_declined", "generic_decline"],
    ["pm_card_chargeDeclinedInsufficientFunds", "card_declined", "insufficient_funds"],
    ["pm_card_chargeDeclinedExpiredCard", "expired_card", "expired_card"],
    ["pm_card_chargeDeclinedFraudulent", "card_declined", "fraudulent"],
  ] as const
) {
  doubleTest(`create declines ${token}`, async ({ create, books }) => {
    const { status, body: { error } } = await create({ payment_method: token });
    assert.equal(status, 402);
    assert.deepEqual([error.type, error.code, error.decline_code], [
      "card_error",
      code,
      decline_code,
    ]);
    assert.equal(error.payment_intent.status, "requires_payment_method");
    assert.equal((await books()).balance_transaction.length, 0);
  });
}

for (const [token, brand] of [["pm_card_mastercard", "mastercard"], ["pm_card_amex", "amex"]]) {
  doubleTest(`create charges ${token}`, async ({ create }) => {
    const { body } = await create({ payment_method: token!, "expand[]": "latest_charge" });
    assert.equal(body.latest_charge.payment_method_details.card.brand, brand);
  });
}

for (
  const [name, form, status, code] of [
    ["an unknown parameter", { no_such: "1" }, 400, "parameter_unknown"],
    [
      "the parameter payment_method_types",
      { "payment_method_types[]": "card" },
      400,
      "payment_method_types_no_longer_supported",
    ],
    ["an unknown token", { payment_method: "pm_unknown" }, 400, "resource_missing"],
    ["no token", { payment_method: "" }, 400, "resource_missing"],
    ["no return_url", { return_url: "", "allowed_payment_method_types[]": "" }, 400, undefined],
    ["an amount of 0", { amount: "0" }, 400, "parameter_invalid_integer"],
    [
      "3-D Secure off session",
      { payment_method: "pm_card_authenticationRequired", off_session: "true" },
      402,
      "authentication_required",
    ],
  ] as const
) {
  doubleTest(`create refuses ${name}`, async ({ create }) => {
    const response = await create(form);
    assert.equal(response.status, status);
    assert.equal(response.body.error.code, code);
  });
}

doubleTest("create refuses the token of another account", async ({ create, double, secret }) => {
  const act = (owner: string) => double.act("tokens", { owner, card: "pm_card_visa" });
  const [mine, other] = await Promise.all([act(secret), act("sk_test_other")]);
  assert.equal((await create({ payment_method: mine.id })).body.status, "succeeded");
  const refused = await create({ payment_method: other.id });
  assert.equal(refused.status, 400);
  assert.equal(refused.body.error.code, "resource_missing");
  assert.equal(refused.body.error.param, "payment_method");
});

doubleTest("keys are live or test keys, and decide the live mode", async ({ double }) => {
  const form = CARD_FORM;
  for (
    const [secret, livemode] of [["sk_live_1", true], ["rk_live_1", true], ["sk_test_1", false]]
  ) {
    const { body } = await callStripe(double.base_url, "payment_intents", {
      secret: String(secret),
      form,
    });
    assert.equal(body.livemode, livemode);
  }
  for (const secret of ["pk_live_1", "", "sk_live_"]) {
    const { status } = await callStripe(double.base_url, "account", { secret });
    assert.equal(status, 401);
  }
  const response = await callStripe(double.base_url, "account", {
    secret: "sk_live_shop",
    version: "2026-10-28.endive",
  });
  assert.equal(response.headers.get("stripe-version"), "2026-10-28.endive");
  assert.equal(response.body.id, "acct_shop");
});

for (const [result, ended] of [["success", "succeeded"], ["failure", "requires_payment_method"]]) {
  doubleTest(`3-D Secure ends ${ended} after ${result}`, async ({ create, get, post, double }) => {
    const { body } = await create({ payment_method: "pm_card_authenticationRequired" });
    assert.equal(body.status, "requires_action");
    const { url } = body.next_action.redirect_to_url;
    // The payment survives both processes before the payer comes back.
    await double.restartEngine();
    await double.restart();
    const page = await fetch(`${url}?result=${result}`, { redirect: "manual" });
    await page.body?.cancel();
    const location = new URL(page.headers.get("location")!);
    assert.equal(location.origin + location.pathname, CARD_FORM.return_url);
    assert.equal(location.searchParams.get("payment_intent"), body.id);
    assert.equal((await get(`payment_intents/${body.id}`)).body.status, ended);
    const { status } = await post(`payment_intents/${body.id}/cancel`, {});
    assert.equal(status, result === "success" ? 400 : 200);
  });
}

doubleTest("3-D Secure before a manual capture, and a cancel of both", async (given) => {
  const { create, post, get } = given;
  const form = { payment_method: "pm_card_authenticationRequired", capture_method: "manual" };
  const [captured, released, abandoned] = await Promise.all([1, 2, 3].map(() => create(form)));
  for (const { body } of [captured!, released!]) {
    const page = await fetch(body.next_action.redirect_to_url.url, { redirect: "manual" });
    await page.body?.cancel();
  }
  assert.equal((await get(`payment_intents/${captured!.body.id}`)).body.status, "requires_capture");
  const response = await post(`payment_intents/${captured!.body.id}/capture`, {});
  assert.equal(response.body.status, "succeeded");
  assert.equal((await post("refunds", { payment_intent: captured!.body.id })).status, 200);
  for (const { body } of [released!, abandoned!]) {
    const { body: { status } } = await post(`payment_intents/${body.id}/cancel`, {});
    assert.equal(status, "canceled");
  }
});

doubleTest("a payer can confirm a declined payment again", async ({ create, get, double }) => {
  const { body: { error } } = await create({ payment_method: "pm_card_chargeDeclined" });
  const payment_intent = error.payment_intent.id;
  await double.act("confirm_again", { payment_intent, payment_method: "pm_card_visa" });
  assert.equal((await get(`payment_intents/${payment_intent}`)).body.status, "succeeded");
});

doubleTest("capture takes a part once, and a cancel or expiry releases all", async (given) => {
  const { create, post, double } = given;
  const manual = () => create({ capture_method: "manual" });
  const { body: { id, amount_capturable } } = await manual();
  assert.equal(amount_capturable, 1099);
  await double.restartEngine();
  const capture = (form: Record<string, string>) => post(`payment_intents/${id}/capture`, form);
  assert.equal((await capture({ amount_to_capture: "2000" })).body.error.code, "amount_too_large");
  assert.equal((await capture({ amount_to_capture: "500" })).body.amount_received, 500);
  assert.equal((await capture({})).body.error.code, "payment_intent_unexpected_state");
  assert.equal((await post(`payment_intents/${id}/cancel`, {})).status, 400);
  const other = (await manual()).body.id;
  assert.equal((await post(`payment_intents/${other}/cancel`, {})).body.status, "canceled");
  const late = (await manual()).body.id;
  const expired = await double.act("expire", { payment_intent: late });
  assert.equal(expired.cancellation_reason, "automatic");
});

doubleTest("refunds never exceed the charge, also at the same time", async (given) => {
  const { create, post, get, double } = given;
  const { body: { id } } = await create();
  await double.restartEngine();
  const refund = (form = {}) => post("refunds", { payment_intent: id, ...form });
  const responses = await Promise.all(Array.from({ length: 6 }, () => refund({ amount: "300" })));
  assert.deepEqual(responses.map(({ status }) => status).sort(), [200, 200, 200, 400, 400, 400]);
  assert.equal((await refund()).body.amount, 199);
  assert.equal((await refund()).body.error.code, "charge_already_refunded");
  await create().then(({ body }) => post("refunds", { payment_intent: body.id }));
  assert.equal(idsOf(await get(`refunds?payment_intent=${id}`)).length, 4);
});

doubleTest("a refund is pending until it is settled, or fails later", async (given) => {
  const { create, post, get, double } = given;
  const refundOf = async (payment_method: string) => {
    const { body } = await create({ payment_method });
    return (await post("refunds", { payment_intent: body.id })).body;
  };
  const pending = await refundOf("pm_card_pendingRefund");
  assert.equal(pending.status, "pending");
  await double.act("settle_refund", { refund: pending.id, status: "succeeded" });
  assert.equal((await get(`refunds/${pending.id}`)).body.status, "succeeded");
  const failing = await refundOf("pm_card_pendingRefund");
  await double.act("settle_refund", { refund: failing.id, status: "failed" });
  assert.equal((await get(`refunds/${failing.id}`)).body.status, "failed");
  const failed = await refundOf("pm_card_refundFail");
  assert.equal(failed.status, "succeeded");
  assert.equal((await get(`refunds/${failed.id}`)).body.status, "failed");
});

doubleTest("a dispute takes the money with a fee, and returns it when won", async (given) => {
  const { create, post, get, double, secret } = given;
  const { body } = await create({ payment_method: "pm_card_createDispute" });
  const [dispute] = (await get("disputes")).body.data;
  assert.equal(dispute.payment_intent, body.id);
  const refused = await post("refunds", { payment_intent: body.id });
  assert.equal(refused.body.error.code, "charge_disputed");
  await double.act("close_dispute", { dispute: dispute.id, status: "won" });
  const moved = (await get(`balance_transactions?source=${dispute.id}`)).body.data;
  assert.deepEqual(moved.map(({ net }: StripeObject) => net), [2599, -2599]);
  const payout = await double.act("payouts", { owner: secret, currency: "eur" });
  assert.equal(payout.amount, 1058);
  assert.equal(idsOf(await get(`balance_transactions?payout=${payout.id}`)).length, 4);
  const { body: { id } } = await create();
  const lost = await double.act("disputes", { payment_intent: id, amount: 100 });
  await double.act("close_dispute", { dispute: lost.id, status: "lost" });
  const taken = (await get(`balance_transactions?source=${lost.id}`)).body.data;
  assert.deepEqual(taken.map(({ net }: StripeObject) => net), [-1600]);
});

doubleTest("lists filter by time and type, and refuse unknown filters", async (given) => {
  const { create, get, books } = given;
  await create();
  const count = async (path: string) => idsOf(await get(path)).length;
  const { payment_intent, balance_transaction } = await books();
  for (const { object, created } of [...payment_intent, ...balance_transaction]) {
    assert.equal(await count(`${object}s?created[gte]=${created}&created[lt]=${created + 1}`), 1);
    assert.equal(await count(`${object}s?created[gte]=${created + 1}`), 0);
    assert.equal(await count(`${object}s?created[lt]=${created}`), 0);
  }
  assert.equal(await count("events?types[]=charge.succeeded&types[]=charge.failed"), 1);
  assert.equal((await get("payment_intents?no_such=1")).body.error.code, "parameter_unknown");
  assert.equal((await get("payment_intents?limit=101")).status, 400);
});

doubleTest("events can be read from a cursor without gaps", async ({ create, get, books }) => {
  await create();
  const ids = idsOf(await get("events?limit=100")).reverse();
  for (let i = 0; i < 2; i++) {
    await create();
    for (let more = true; more;) {
      const page = await get(`events?limit=2&ending_before=${ids.at(-1)}`);
      ids.push(...idsOf(page).reverse());
      more = page.body.has_more;
    }
  }
  assert.equal(ids.length, 9);
  assert.deepEqual(ids, (await books()).event.map(({ id }) => id));
});

doubleTest("a connected account sees its own objects alone", async ({ double, secret, get }) => {
  const given = { secret, account: "acct_1" };
  const { base_url } = double;
  const mine = await callStripe(base_url, "payment_intents", { ...given, form: CARD_FORM });
  assert.equal(mine.status, 200);
  assert.equal((await callStripe(base_url, "account", given)).body.id, "acct_1");
  assert.equal((await get(`payment_intents/${mine.body.id}`)).status, 404);
  const { event: [event] } = await double.books(`${secret}/acct_1`);
  assert.equal(event!.account, "acct_1");
});
