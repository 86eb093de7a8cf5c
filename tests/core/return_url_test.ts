/** The parameter of a return URL, which keeps the merchant's own query and fragment. */

import assert from "node:assert/strict";
import { withPaymentId } from "../../shared/core/return_url.ts";

const CASES: [url: string, expected: string][] = [
  ["https://shop.example", "https://shop.example/?payment_id=pay_1"],
  ["https://shop.example/back", "https://shop.example/back?payment_id=pay_1"],
  ["https://shop.example/back?", "https://shop.example/back?payment_id=pay_1"],
  ["https://shop.example/back?order=7", "https://shop.example/back?order=7&payment_id=pay_1"],
  ["https://shop.example/back#paid", "https://shop.example/back?payment_id=pay_1#paid"],
  [
    "https://shop.example/back?a=%20+b&a=#/x?y=1",
    "https://shop.example/back?a=%20+b&a=&payment_id=pay_1#/x?y=1",
  ],
  ["http://localhost:3000/ ", "http://localhost:3000/?payment_id=pay_1"],
];

for (const [url, expected] of CASES) {
  Deno.test(`withPaymentId() ${JSON.stringify(url)}`, () => {
    assert.equal(withPaymentId(url, "pay_1"), expected);
  });
}
