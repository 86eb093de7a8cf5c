/**
 * Builds the page for payers in memory: its two scripts bundled by `deno bundle`, each with a copy
 * of the document whose policy is a header, and the style sheet. The card step of live checkouts
 * has its own, because only its policy names the hosts of Stripe.
 */

import { APPLICATION_HEADERS, fileOf, readAssets } from "./assets.ts";
import { bundleScript } from "./bundle_script.ts";
import { escapeHtml } from "./docs_site/html.ts";
import type { StaticFile, StaticSite } from "./static_site.ts";

const CHECKOUT = new URL("../../apps/checkout/", import.meta.url);
const PAGE = "index.html";
const CARD = "card/index.html";
/** The hosts that Stripe's page of content security policies names for its script. */
const STRIPE = {
  script: "https://js.stripe.com https://*.js.stripe.com",
  bank: "https://hooks.stripe.com",
  api: "https://api.stripe.com",
};
/** Placeholders in the document, for the base URL of the API and the path of the shared files. */
const API_PLACE = "{{api-base-url}}";
const ROOT_PLACE = "{{root}}";

/**
 * Builds the page.
 * @param base_url base URL of the API, or a path on the origin that serves the page
 * @throws {Error} with the output of `deno bundle` if it fails
 */
export async function buildCheckoutSite(base_url: string): Promise<StaticSite> {
  const [text, script, card_script, assets] = await Promise.all([
    Deno.readTextFile(new URL(PAGE, CHECKOUT)),
    bundleScript("apps/checkout/main.tsx"),
    bundleScript("apps/checkout/card/main.tsx"),
    readAssets(CHECKOUT, ["style.css", "icon.svg"]),
  ]);
  const document = text.replace(API_PLACE, escapeHtml(base_url));
  const documentOf = (root: string, policy: string): StaticFile => ({
    ...fileOf(PAGE, document.replaceAll(ROOT_PLACE, root)),
    headers: { "Content-Security-Policy": policy },
  });
  return {
    files: new Map([
      [PAGE, documentOf("", policyFor(base_url, null))],
      [CARD, documentOf("../", policyFor(base_url, STRIPE))],
      ["main.js", fileOf("main.js", script)],
      ["card/main.js", fileOf("main.js", card_script)],
      ...assets,
    ]),
    headers: APPLICATION_HEADERS,
  };
}

/**
 * Allows files of this origin and requests to the API. With Stripe also its script, its frames and
 * its API; without it no HTML that scripts make from text.
 */
function policyFor(base_url: string, stripe: typeof STRIPE | null): string {
  const api = base_url.startsWith("/") ? "" : ` ${new URL(base_url).origin}`;
  return [
    "default-src 'none'",
    ...(stripe
      ? [`script-src 'self' ${stripe.script}`, `frame-src ${stripe.script} ${stripe.bank}`]
      : ["script-src 'self'"]),
    `connect-src 'self'${api}${stripe ? ` ${stripe.api}` : ""}`,
    "style-src 'self'",
    "img-src 'self' data:",
    "form-action 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
    // Stripe's script assigns addresses of scripts.
    ...(stripe ? [] : ["require-trusted-types-for 'script'", "trusted-types 'none'"]),
  ].join("; ");
}
