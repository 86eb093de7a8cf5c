/** The table of currencies: known members, unknown codes, decimals. */

import assert from "node:assert/strict";
import {
  CURRENCIES,
  formatAmount,
  isCurrency,
  minorUnitDigits,
  normalizeCurrency,
  parseDecimal,
  STABLECOINS,
} from "../../shared/core/currency.ts";

const DIGITS: [code: string, digits: number][] = [
  ["EUR", 2],
  ["USD", 2],
  ["GBP", 2],
  ["CHF", 2],
  ["XCG", 2],
  ["MGA", 2],
  ["MRU", 2],
  ["JPY", 0],
  ["KRW", 0],
  ["ISK", 0],
  ["UGX", 0],
  ["XOF", 0],
  ["KWD", 3],
  ["TND", 3],
  ["USDC", 6],
  ["USDT", 6],
];

for (const [code, digits] of DIGITS) {
  Deno.test(`minorUnitDigits() of ${code} is ${digits}`, () => {
    assert.ok(isCurrency(code));
    assert.equal(minorUnitDigits(code), digits);
  });
}

const REFUSED = [
  ...["", "EU", "EURO", "eur", "Eur", "EUR ", "978", "ZZZ", "uſd", "ＥＵＲ"],
  ...["constructor", "__proto__", "size", "BTC", "DAI", "USDCX"],
  ...["XTS", "XXX", "XAU", "XAG", "XPD", "XPT", "XDR", "XSU", "XUA", "XBA", "XBD"],
  ...["BOV", "CHE", "CHW", "CLF", "COU", "MXV", "USN", "UYI", "UYW"],
  ...["ANG", "BGN", "HRK", "SLL", "ZWL", "DEM", "CUC"],
];

for (const text of REFUSED) {
  Deno.test(`isCurrency() refuses ${JSON.stringify(text)}`, () => {
    assert.equal(isCurrency(text), false);
    assert.throws(() => minorUnitDigits(text), RangeError);
  });
}

Deno.test("CURRENCIES has each code once, in order, with known decimals", () => {
  const codes = [...CURRENCIES.keys()];
  assert.deepEqual(codes, codes.toSorted());
  const counts = new Map<number, number>();
  for (const [code, digits] of CURRENCIES) {
    assert.match(code, digits === 6 ? /^USD[CT]$/ : /^[A-Z]{3}$/);
    counts.set(digits, (counts.get(digits) ?? 0) + 1);
  }
  // A code in two groups of decimals would lower one of these counts.
  assert.deepEqual(counts, new Map([[2, 132], [3, 7], [0, 16], [6, 2]]));
});

const AMOUNTS: [amount_minor: number, code: string, text: string][] = [
  [1999, "EUR", "19.99 EUR"],
  [5, "EUR", "0.05 EUR"],
  [0, "EUR", "0.00 EUR"],
  [1999, "JPY", "1999 JPY"],
  [19_995, "KWD", "19.995 KWD"],
  [1_500_000, "USDC", "1.500000 USDC"],
  [999_999_999_999, "EUR", "9999999999.99 EUR"],
];

for (const [amount_minor, code, text] of AMOUNTS) {
  Deno.test(`formatAmount() writes ${amount_minor} as ${text}, and parseDecimal() reads it`, () => {
    assert.equal(formatAmount(amount_minor, code), text);
    assert.equal(parseDecimal(text.split(" ")[0]!, code), amount_minor);
  });
}

const DECIMALS: [text: string, code: string, amount_minor: number | null][] = [
  ["19.9", "EUR", 1990],
  ["19.990", "EUR", 1999],
  ["19.999", "EUR", null],
  ["19.99", "JPY", null],
  ["500.00", "JPY", 500],
  ["1.5", "USDC", 1_500_000],
  ["1.0000005", "USDC", null],
  ["0.29", "EUR", 29],
  [".5", "EUR", null],
  ["-1.5", "EUR", null],
  ["1e3", "EUR", null],
  ["1,5", "EUR", null],
  ["", "EUR", null],
];

for (const [text, code, amount_minor] of DECIMALS) {
  Deno.test(`parseDecimal() of "${text}" ${code} is ${amount_minor}`, () => {
    assert.equal(parseDecimal(text, code), amount_minor);
  });
}

Deno.test("STABLECOINS are currencies", () => {
  for (const code of STABLECOINS) assert.ok(isCurrency(code));
});

Deno.test("normalizeCurrency() only changes ASCII letters to upper case", () => {
  assert.equal(normalizeCurrency("eUr"), "EUR");
  assert.equal(normalizeCurrency("usdc"), "USDC");
  assert.equal(normalizeCurrency("uſd"), "UſD");
  assert.equal(normalizeCurrency(" eur"), " EUR");
});
