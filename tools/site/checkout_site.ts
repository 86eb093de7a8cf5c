/**
 * Builds the page for payers in memory: its two scripts bundled by `deno bundle`, each with a document
 * whose policy is a header, and the style sheet. The card step of live checkouts is a document of its
 * own, because only its policy names the hosts of Stripe.
 */

import { fileOf, readAssets } from "./assets.ts";
import { bundleScript } from "./bundle_script.ts";
import { escapeHtml } from "./docs_site/html.ts";
import type { StaticFile, StaticSite } from "./static_site.ts";

const CHECKOUT = new URL("../../apps/checkout/", import.meta.url);
const PAGE = "index.html";
const CARD = "card/index.html";
/** The hosts that Stripe's page of content security policies names for its script. */
const STRIPE = {
  script: "https://js.stripe.com https://*.js.stripe.com",
  api: "https://api.stripe.com",
};
/** Placeholder in the document, for the base URL of the API. */
const API_PLACE = "{{api-base-url}}";

/**
 * Builds the page.
 * @param base_url base URL of the API, or a path on the origin that serves the page
 * @throws {Error} with the output of `deno bundle` if it fails
 */
export async function buildCheckoutSite(base_url: string): Promise<StaticSite> {
  const [page, card, script, card_script, assets] = await Promise.all([
    documentOf(PAGE, base_url, policyFor(base_url)),
    documentOf(CARD, base_url, cardPolicyFor(base_url)),
    bundleScript("apps/checkout/main.tsx"),
    bundleScript("apps/checkout/card/main.tsx"),
    readAssets(CHECKOUT, ["style.css", "icon.svg"]),
  ]);
  return {
    files: new Map([
      [PAGE, page],
      [CARD, card],
      ["main.js", fileOf("main.js", script)],
      ["card/main.js", fileOf("main.js", card_script)],
      ...assets,
    ]),
    headers: {
      "X-Content-Type-Options": "nosniff",
      "Referrer-Policy": "no-referrer",
      "Cross-Origin-Opener-Policy": "same-origin",
    },
  };
}

/** A document with its policy. */
async function documentOf(name: string, base_url: string, policy: string): Promise<StaticFile> {
  const text = await Deno.readTextFile(new URL(name, CHECKOUT));
  const file = fileOf(name, text.replace(API_PLACE, escapeHtml(base_url)));
  return { ...file, headers: { "Content-Security-Policy": policy } };
}

/** Allows Stripe's script, its frames and its API beside files of this origin and our API. */
function cardPolicyFor(base_url: string): string {
  return [
    "default-src 'none'",
    `script-src 'self' ${STRIPE.script}`,
    `frame-src ${STRIPE.script} https://hooks.stripe.com`,
    `connect-src 'self'${apiOf(base_url)} ${STRIPE.api}`,
    "style-src 'self'",
    "img-src 'self' data:",
    "form-action 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
  ].join("; ");
}

/** The origin of the API in a policy; empty if the page has the same. */
function apiOf(base_url: string): string {
  return base_url.startsWith("/") ? "" : ` ${new URL(base_url).origin}`;
}

/** Allows files of this origin, requests to the API, and no HTML that scripts make from text. */
function policyFor(base_url: string): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    `connect-src 'self'${apiOf(base_url)}`,
    "style-src 'self'",
    "img-src 'self' data:",
    "form-action 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join("; ");
}
