/**
 * Amounts in the console: formatMinor() and parseAmount() are exact, and refuse amounts that a
 * currency cannot have.
 */

import assert from "node:assert/strict";
import { formatMinor, parseAmount, plainMinor } from "../../apps/console/data/money.ts";

const EXACT: [amount_minor: number, currency: string, shown: string, typed: string][] = [
  [1, "EUR", "0.01", "0.01"],
  [1999, "EUR", "19.99", "19.99"],
  [1_234_567, "EUR", "12,345.67", "12345.67"],
  [100, "USD", "1.00", "1.00"],
  [999_999_999_999, "EUR", "9,999,999,999.99", "9999999999.99"],
  [5, "JPY", "5", "5"],
  [1_000_000, "JPY", "1,000,000", "1000000"],
  [1, "KWD", "0.001", "0.001"],
  [1_234_567, "TND", "1,234.567", "1234.567"],
  [1, "USDC", "0.000001", "0.000001"],
  [1_500_000, "USDT", "1.500000", "1.500000"],
];

for (const [amount_minor, currency, shown, typed] of EXACT) {
  Deno.test(`formatMinor() ${amount_minor} ${currency} is ${shown}, and can be parsed`, () => {
    assert.equal(formatMinor(amount_minor, currency), shown);
    assert.equal(plainMinor(amount_minor, currency), typed);
    assert.equal(parseAmount(typed, currency), amount_minor);
    assert.equal(parseAmount(shown, currency), amount_minor);
    assert.equal(parseAmount(`${shown} ${currency}`, currency), amount_minor);
  });
}

const TYPED: [text: string, currency: string, amount_minor: number][] = [
  ["19", "EUR", 1900],
  ["19.9", "EUR", 1990],
  ["19.", "EUR", 1900],
  [".5", "EUR", 50],
  [" 7 ", "eur", 700],
  // A float would give 113.99999999999999 and 1998.9999999999998.
  ["1.14", "EUR", 114],
  ["19.99", "EUR", 1999],
  ["4.35", "EUR", 435],
  ["0", "EUR", 0],
  ["-0", "EUR", 0],
  ["-5", "EUR", -500],
  ["12", "EURO", 1200],
  ["1,234.50", "EUR", 123450],
  ["1,234.5", "EUR", 123450],
  ["1,234,567", "EUR", 123456700],
  ["1,234", "JPY", 1234],
  ["1,234 JPY", "JPY", 1234],
  ["19.99 eur", "EUR", 1999],
  ["−10.50", "EUR", -1050],
  ["−1,234.50 EUR", "EUR", -123450],
];

for (const [text, currency, amount_minor] of TYPED) {
  Deno.test(`parseAmount() "${text}" ${currency} is ${amount_minor}`, () => {
    assert.ok(Object.is(parseAmount(text, currency), amount_minor));
  });
}

const REFUSED: [text: string, currency: string, message: RegExp][] = [
  ["", "EUR", /Enter an amount/],
  ["ten", "EUR", /not an amount: write it like 19.99/],
  ["1,234", "EUR", /"1,234" can mean 1234 or 1\.234: write it without a comma/],
  ["1,234.", "EUR", /can mean 1234 or 1\.234/],
  ["1,234", "KWD", /can mean 1234 or 1\.234/],
  ["19,99", "EUR", /"19,99" is not an amount: write it like 19\.99/],
  ["1.234,50", "EUR", /not an amount/],
  ["12,34,567.00", "EUR", /not an amount/],
  ["1234,567.00", "EUR", /not an amount/],
  [",123.00", "EUR", /not an amount/],
  ["1 234.50", "EUR", /not an amount/],
  ["19.99 USD", "EUR", /"19\.99 USD" is not in EUR/],
  ["1,234.5678", "EUR", /too many decimals/],
  ["1e3", "EUR", /not an amount/],
  ["0x10", "EUR", /not an amount/],
  [".", "EUR", /not an amount/],
  ["1.2.3", "EUR", /not an amount/],
  ["1.999", "EUR", /too many decimals: EUR has at most 2 decimals/],
  ["1.5", "JPY", /too many decimals: JPY has no decimals/],
  ["90071992547409.93", "EUR", /too large/],
];

for (const [text, currency, message] of REFUSED) {
  Deno.test(`parseAmount() "${text}" ${currency} is refused`, () => {
    assert.throws(() => parseAmount(text, currency), message);
  });
}

Deno.test("formatMinor() of a negative amount has a minus sign", () => {
  assert.equal(formatMinor(-1050, "EUR"), "−10.50");
});
