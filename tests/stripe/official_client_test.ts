/** Stripe's own package reads the double as it reads Stripe. */

import assert from "node:assert/strict";
import Stripe from "stripe";
import { no_stripe_double, startStripeDouble } from "../support/stripe/double.ts";

const CARD: Stripe.PaymentIntentCreateParams = {
  amount: 1099,
  currency: "eur",
  confirm: true,
  capture_method: "automatic",
  payment_method: "pm_card_visa",
  allowed_payment_method_types: ["card"],
  return_url: "https://shop.example/back",
};

Deno.test({
  name: "Stripe's package pays, refunds, lists and reads errors",
  ignore: no_stripe_double,
  async fn() {
    const double = await startStripeDouble();
    assert.ok(double, "localstripe is not installed");
    try {
      const { hostname, port } = new URL(double.base_url);
      const stripe = new Stripe("sk_test_1", {
        host: hostname,
        port,
        protocol: "http",
        maxNetworkRetries: 0,
        httpClient: Stripe.createFetchHttpClient(),
        telemetry: false,
      });
      const create = (
        more: Partial<Stripe.PaymentIntentCreateParams> = {},
        idempotencyKey?: string,
      ) =>
        stripe.paymentIntents.create(
          { ...CARD, ...more },
          idempotencyKey ? { idempotencyKey } : {},
        );
      const payment = await create({ expand: ["latest_charge.balance_transaction"] }, "pc_1");
      const charge = payment.latest_charge as Stripe.Charge;
      assert.equal((charge.balance_transaction as Stripe.BalanceTransaction).fee, 41);
      const refund = await stripe.refunds.create({ payment_intent: payment.id, amount: 99 });
      assert.equal(refund.status, "succeeded");
      await assert.rejects(create({ amount: 1 }, "pc_1"), { type: "StripeIdempotencyError" });
      await assert.rejects(create({ payment_method: "pm_card_chargeDeclinedInsufficientFunds" }), {
        type: "StripeCardError",
        decline_code: "insufficient_funds",
      });
      await assert.rejects(create({ payment_method: "pm_unknown" }), {
        type: "StripeInvalidRequestError",
        code: "resource_missing",
        param: "payment_method",
      });
      await double.plant({ at: "before", act: "rate_limit" });
      await assert.rejects(create(), { type: "StripeRateLimitError" });
      const types = [];
      for await (const event of stripe.events.list({ limit: 2 })) types.unshift(event.type);
      assert.deepEqual(types, [
        "payment_intent.created",
        "charge.succeeded",
        "payment_intent.succeeded",
        "refund.created",
        "charge.refunded",
        "payment_intent.created",
        "charge.failed",
        "payment_intent.payment_failed",
      ]);
    } finally {
      await double.close();
    }
  },
});
