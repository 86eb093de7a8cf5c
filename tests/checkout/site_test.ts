/** The built page for payers: its size, its policy, its folder for any host, and its languages. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { LANGUAGES, wordsFor } from "../../apps/checkout/data/words.ts";
import { buildCheckoutSite } from "../../tools/site/checkout_site.ts";
import { readSiteFolder, writeHostedSite, writeSiteFolder } from "../../tools/site/site_folder.ts";
import { withTemporaryFolder } from "../support/common/temporary_folder.ts";

/** The maximum of compressed bytes for a first visit. */
const MAX_WEIGHT = 60_000;
const HOSTED = "https://ref.supabase.co/functions/v1";

Deno.test("buildCheckoutSite() weighs at most 60 kB compressed, and names no provider", async () => {
  const { files } = await buildCheckoutSite("/functions/v1");
  for (const names of [/^[^/]+$/, /^card\/|\.(css|svg)$/]) {
    const weights = [...files].filter(([name]) => names.test(name))
      .map(([name, { body }]) => [name, gzipSync(body).length] as const);
    const weight = weights.reduce((sum, [, bytes]) => sum + bytes, 0);
    assert.ok(weight <= MAX_WEIGHT, `${weight} bytes: ${weights.join(" ")}`);
  }
  const page = files.get("index.html")!.body as string;
  for (const [, name] of page.matchAll(/(?:href|src)="([^"]+)"/g)) {
    assert.ok(files.has(name!), name);
  }
  assert.doesNotMatch(page, /<script>|<style|\sstyle=|\son\w+=|\{\{/);
  for (const name of ["index.html", "main.js", "style.css"]) {
    const { body } = files.get(name)!;
    const text = typeof body === "string" ? body : new TextDecoder().decode(body);
    assert.doesNotMatch(text, /stripe/i, name);
  }
});

/** The policy of each document. */
const POLICIES = {
  "index.html":
    "default-src 'none'; script-src 'self'; connect-src 'self' https://ref.supabase.co; " +
    "style-src 'self'; img-src 'self' data:; form-action 'self'; frame-ancestors 'none'; " +
    "base-uri 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
  "card/index.html": "default-src 'none'; script-src 'self' " +
    "https://js.stripe.com https://*.js.stripe.com; " +
    "frame-src https://js.stripe.com https://*.js.stripe.com https://hooks.stripe.com; " +
    "connect-src 'self' https://ref.supabase.co https://api.stripe.com; style-src 'self'; " +
    "img-src 'self' data:; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
};

Deno.test("buildCheckoutSite() has its policies as headers, also in the folder for a host", async () => {
  const site = await buildCheckoutSite(HOSTED);
  for (const [name, policy] of Object.entries(POLICIES)) {
    assert.deepEqual(site.files.get(name)!.headers, { "Content-Security-Policy": policy });
  }
  await withTemporaryFolder(async (folder) => {
    await writeHostedSite(site, join(folder, "hosted"));
    const headers = await Deno.readTextFile(join(folder, "hosted", "_headers"));
    for (const [name, policy] of Object.entries(POLICIES)) {
      const line = `  Content-Security-Policy: ${policy}\n`;
      const folder = `/${name.replace("index.html", "")}`;
      assert.ok(headers.includes(`\n/${name}\n${line}${folder}\n${line}`), headers);
    }
    await writeSiteFolder(site, join(folder, "packaged"));
    const read = await readSiteFolder(join(folder, "packaged"));
    assert.deepEqual(read.files.get("index.html")!.headers, site.files.get("index.html")!.headers);
  });
});

Deno.test("buildCheckoutSite() escapes the address in the page", async () => {
  const { files } = await buildCheckoutSite(`/x"><script>alert(1)</script>`);
  assert.doesNotMatch(files.get("index.html")!.body as string, /<script>/);
});

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
