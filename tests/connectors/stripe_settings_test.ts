/** Settings of an account at Stripe. */

import assert from "node:assert/strict";
import { stripeConnector } from "../../shared/connectors/stripe/stripe_connector.ts";
import { readStripeSettings } from "../../shared/connectors/stripe/stripe_settings.ts";
import { ApiError } from "../../shared/core/errors.ts";

const BASE_URLS: [base_url: string, accepted: boolean][] = [
  ["https://api.stripe.com", true],
  ["https://api.stripe.com/", true],
  ["http://127.0.0.1:12111", true],
  ["https://127.0.0.1:12111", true],
  ["http://localhost:12111", true],
  ["http://[::1]:12111", true],
  ["http://api.stripe.com", false],
  ["https://api.stripe.com.evil.example", false],
  ["https://api.stripe.com:8443", false],
  ["https://stripe.example", false],
  ["https://127.0.0.1.evil.example", false],
  ["http://127.0.0.2:1", false],
  ["http://10.0.0.1", false],
  ["http://localhost@evil.example", false],
  ["http://user:secret@localhost", false],
  ["http://localhost/v1", false],
  ["http://localhost/?a=b", false],
  ["http://localhost/#a", false],
  ["ftp://localhost", false],
  ["localhost:12111", false],
  ["", false],
];

for (const [base_url, accepted] of BASE_URLS) {
  Deno.test(`readStripeSettings() ${accepted ? "accepts" : "refuses"} "${base_url}"`, () => {
    if (accepted) readStripeSettings({ base_url });
    else assertRefused("base_url", { base_url });
  });
}

const OTHERS: [setting: string, value: string, accepted: boolean][] = [
  ["connected_account", "acct_1032D82eZvKYlo2C", true],
  ["connected_account", "", false],
  ["connected_account", "acct_", false],
  ["connected_account", "cus_1", false],
  ["connected_account", "acct_1\r\nX-Evil: 1", false],
  ["api_key", "sk_live_1", false],
];

for (const [setting, value, accepted] of OTHERS) {
  Deno.test(`checkSettings() ${accepted ? "accepts" : "refuses"} ${setting} "${value}"`, async () => {
    const settings = { [setting]: value };
    if (!accepted) return await assertRefused(setting, settings);
    assert.deepEqual(await stripeConnector().checkSettings(settings), settings);
  });
}

Deno.test("readStripeSettings() gives defaults", () => {
  const defaults = { base_url: "https://api.stripe.com", connected_account: null };
  assert.deepEqual(readStripeSettings({}), defaults);
});

async function assertRefused(param: string, settings: Record<string, string>): Promise<void> {
  await assert.rejects(stripeConnector().checkSettings(settings), (error) => {
    assert.ok(error instanceof ApiError);
    assert.equal(error.code, "invalid_parameter");
    assert.equal(error.details.param, param);
    for (const value of Object.values(settings)) {
      assert.ok(value.length < 6 || !error.message.includes(value));
    }
    return true;
  });
}
