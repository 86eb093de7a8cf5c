/** Minor units of Stripe beside ours. */

import assert from "node:assert/strict";
import {
  fromStripeAmount,
  nearestAmount,
  toStripeAmount,
} from "../../shared/connectors/stripe/stripe_amount.ts";
import { CURRENCIES } from "../../shared/core/currency.ts";

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
