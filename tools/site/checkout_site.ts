/**
 * Builds the page for payers in memory: `apps/checkout/main.tsx` bundled by `deno bundle`, the
 * document with its policy as a header, and the style sheet.
 */

import { fileOf, readAssets } from "./assets.ts";
import { bundleScript } from "./bundle_script.ts";
import { escapeHtml } from "./docs_site/html.ts";
import type { StaticFile, StaticSite } from "./static_site.ts";

const CHECKOUT = new URL("../../apps/checkout/", import.meta.url);
const PAGE = "index.html";
/** Placeholder in the document, for the base URL of the API. */
const API_PLACE = "{{api-base-url}}";

/**
 * Builds the page.
 * @param base_url base URL of the API, or a path on the origin that serves the page
 * @throws {Error} with the output of `deno bundle` if it fails
 */
export async function buildCheckoutSite(base_url: string): Promise<StaticSite> {
  const [page, script, assets] = await Promise.all([
    Deno.readTextFile(new URL(PAGE, CHECKOUT)),
    bundleScript("apps/checkout/main.tsx"),
    readAssets(CHECKOUT, ["style.css", "icon.svg"]),
  ]);
  return {
    files: new Map([
      [PAGE, documentOf(page.replace(API_PLACE, escapeHtml(base_url)), policyFor(base_url))],
      ["main.js", fileOf("main.js", script)],
      ...assets,
    ]),
    headers: {
      "X-Content-Type-Options": "nosniff",
      "Referrer-Policy": "no-referrer",
      "Cross-Origin-Opener-Policy": "same-origin",
    },
  };
}

/** A document with a policy of its own, because the page of live cards allows other hosts. */
function documentOf(html: string, policy: string): StaticFile {
  return { ...fileOf(PAGE, html), headers: { "Content-Security-Policy": policy } };
}

/** Allows files of this origin, requests to the API, and no HTML that scripts make from text. */
function policyFor(base_url: string): string {
  const api = base_url.startsWith("/") ? "" : ` ${new URL(base_url).origin}`;
  return [
    "default-src 'none'",
    "script-src 'self'",
    `connect-src 'self'${api}`,
    "style-src 'self'",
    "img-src 'self' data:",
    "form-action 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join("; ");
}
