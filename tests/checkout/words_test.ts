/** The words of the page for payers: its languages, and amounts and days as people write them. */

import assert from "node:assert/strict";
import { LANGUAGES, wordsFor } from "../../apps/checkout/data/words.ts";

Deno.test("every language has the same texts with the same values", () => {
  const placesOf = (text: string) => new Set(text.match(/\{\w+\}/g));
  for (const [language, texts] of Object.entries(LANGUAGES)) {
    assert.deepEqual(Object.keys(texts), Object.keys(LANGUAGES["en"]!), language);
    for (const [key, text] of Object.entries(texts)) {
      const english = LANGUAGES["en"]![key as keyof typeof texts];
      assert.deepEqual(placesOf(text), placesOf(english), `${language} ${key}`);
    }
  }
});

/** The wanted language, those of the browser, and the language, price and day that follow. */
const WORDS: [wanted: string | null, spoken: string[], language: string, texts: string][] = [
  ["de", ["en-US"], "de", "1.234,56 € 21,99 USDC 1.235 ¥ 14. Dezember 2026"],
  [null, ["pt", "en-GB"], "en-GB", "€1,234.56 21.99 USDC JP¥1,235 14 December 2026"],
  ["fr", ["fr-CH"], "fr-CH", "1 234.56 € 21,99 USDC 1 235 JPY 14 décembre 2026"],
  ["pt", ["pt"], "en", "€1,234.56 21.99 USDC ¥1,235 December 14, 2026"],
];

for (const [wanted, spoken, language, texts] of WORDS) {
  Deno.test(`wordsFor() writes "${wanted}" for ${spoken} in ${language}`, () => {
    const words = wordsFor(wanted, spoken);
    const { money, day } = words;
    const written = [money(123_456, "EUR"), money(21_990_000, "USDC"), money(1_235, "JPY")];
    assert.equal(words.language, language);
    assert.equal([...written, day("2026-12-14")].join(" ").replace(/\s/g, " "), texts);
  });
}
