/** stripe-mock checks the requests of the tests against Stripe's OpenAPI document. */

import assert from "node:assert/strict";
import { callStripe, CARD_FORM } from "../support/stripe/stripe_call.ts";
import { no_stripe_mock, startStripeMock } from "../support/stripe/stripe_mock.ts";

Deno.test({
  name: "stripe-mock accepts a card payment, and refuses an unknown parameter",
  ignore: no_stripe_mock,
  async fn() {
    const mock = await startStripeMock();
    assert.ok(mock, "stripe-mock is not installed");
    try {
      const create = (form: Record<string, string>) =>
        callStripe(mock.base_url, "payment_intents", { secret: "sk_test_1", form });
      const { status, body } = await create(CARD_FORM);
      assert.equal(status, 200);
      assert.equal(body.object, "payment_intent");
      const refused = await create({ ...CARD_FORM, no_such: "1" });
      assert.equal(refused.status, 400);
      assert.match(refused.body.error.message, /additional properties are not allowed/);
    } finally {
      await mock.close();
    }
  },
});
