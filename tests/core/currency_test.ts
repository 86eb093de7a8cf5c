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

const DIGITS: [digits: number, codes: string][] = [
  [0, "JPY KRW ISK UGX XOF"],
  [2, "EUR USD GBP CHF XCG MGA MRU"],
  [3, "KWD TND"],
  [6, "USDC USDT"],
];
for (const [digits, codes] of DIGITS) {
  Deno.test(`minorUnitDigits() of ${codes} is ${digits}`, () => {
    for (const code of codes.split(" ")) {
      assert.ok(isCurrency(code), code);
      assert.equal(minorUnitDigits(code), digits, code);
    }
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

const DECIMALS: [code: string, amounts: Record<string, number | null>][] = [
  ["EUR", { "19.9": 1990, "19.990": 1999, "0.29": 29, "19.999": null, "": null }],
  ["EUR", { ".5": null, "-1.5": null, "1e3": null, "1,5": null }],
  ["JPY", { "500.00": 500, "19.99": null }],
  ["USDC", { "1.5": 1_500_000, "1.0000005": null }],
];
for (const [code, amounts] of DECIMALS) {
  Deno.test(`parseDecimal() of ${code}: ${Object.keys(amounts).join(" ")}`, () => {
    for (const [text, amount] of Object.entries(amounts)) {
      assert.equal(parseDecimal(text, code), amount, text);
    }
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
