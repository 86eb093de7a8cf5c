/** Settings of an account at Stripe, and its minor units beside ours. */

import assert from "node:assert/strict";
import {
  fromStripeAmount,
  nearestAmount,
  toStripeAmount,
} from "../../shared/connectors/stripe/stripe_amount.ts";
import { stripeConnector } from "../../shared/connectors/stripe/stripe_connector.ts";
import { readStripeSettings } from "../../shared/connectors/stripe/stripe_settings.ts";
import { CURRENCIES } from "../../shared/core/currency.ts";
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
  ["publishable_key", "pk_live_51AbcDEF", true],
  ["publishable_key", "pk_test_51AbcDEF", false],
  ["publishable_key", "sk_live_51AbcDEF", false],
  ["publishable_key", "rk_live_51AbcDEF", false],
  ["publishable_key", "pk_live_-", false],
  ["publishable_key", 'pk_live_1"><script>', false],
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
  assert.deepEqual(readStripeSettings({}), {
    base_url: "https://api.stripe.com",
    connected_account: null,
    publishable_key: null,
  });
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

const SENT: [amount_minor: number, currency: string, stripe: number | null][] = [
  [1099, "EUR", 1099],
  [1099, "HUF", 1099],
  [1099, "TWD", 1099],
  [500, "JPY", 500],
  [500, "XOF", 500],
  [5, "ISK", 500],
  [5, "UGX", 500],
  [500, "MGA", 5],
  [550, "MGA", null],
  [5120, "KWD", 5120],
  [5124, "KWD", null],
  [10, "TND", 10],
  [1, "BHD", null],
  [1000, "IQD", null],
  [1000, "LYD", null],
  [1_000_000, "USDC", null],
  [1_000_000, "USDT", null],
  [100, "XYZ", null],
  [Number.MAX_SAFE_INTEGER, "ISK", null],
];

for (const [amount_minor, currency, stripe] of SENT) {
  Deno.test(`toStripeAmount() of ${amount_minor} ${currency} is ${stripe}`, () => {
    assert.equal(toStripeAmount(amount_minor, currency), stripe);
    if (stripe !== null) assert.equal(fromStripeAmount(stripe, currency), amount_minor);
  });
}

Deno.test("toStripeAmount() and fromStripeAmount() agree for every currency", () => {
  for (const currency of CURRENCIES.keys()) {
    for (const amount_minor of [1, 7, 10, 100, 1990, 99_999_900]) {
      const stripe = toStripeAmount(amount_minor, currency);
      if (stripe !== null) assert.equal(fromStripeAmount(stripe, currency), amount_minor, currency);
    }
  }
});

Deno.test("fromStripeAmount() refuses a part of our unit, and nearestAmount() rounds it", () => {
  assert.equal(fromStripeAmount(137, "ISK"), null);
  assert.equal(nearestAmount(137, "ISK"), 1);
  assert.equal(nearestAmount(-1058, "EUR"), -1058);
});
