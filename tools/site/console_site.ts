/**
 * Builds the console in memory: `apps/console/main.tsx` bundled by `deno bundle`, the page, its
 * style sheets, and the headers of every response (ADR 0012).
 */

import { bundleScript } from "./bundle_script.ts";
import { APPLICATION_HEADERS, CONSOLE, fileOf, pagePolicy, readAssets } from "./assets.ts";
import { escapeHtml } from "./docs_site/html.ts";
import type { StaticSite } from "./static_site.ts";

/** Files that are served unchanged. */
const ASSETS = [
  ...["theme.css", "layout.css", "controls.css", "content.css", "icon.svg"],
  ...["geist.woff2", "geist_license.txt"],
];
const PAGE = "index.html";
const API_PLACE = "{{api-base-url}}";
const POLICY_PLACE = "{{content-security-policy}}";

/**
 * Builds the console.
 * @param base_url base URL of the API, or a path on the origin that serves the page
 * @throws {Error} with the output of `deno bundle` if it fails
 */
export async function buildConsoleSite(base_url: string): Promise<StaticSite> {
  const policy = pagePolicy(base_url.startsWith("/") ? "'self'" : new URL(base_url).origin);
  const [page, script, assets] = await Promise.all([
    Deno.readTextFile(new URL(PAGE, CONSOLE)),
    bundleScript("apps/console/main.tsx"),
    readAssets(CONSOLE, ASSETS),
  ]);
  const html = page
    .replace(API_PLACE, escapeHtml(base_url))
    .replace(POLICY_PLACE, escapeHtml(policy));
  return {
    files: new Map([
      [PAGE, fileOf(PAGE, html)],
      ["main.js", fileOf("main.js", script)],
      ...assets,
    ]),
    headers: {
      // The page has the same policy in a <meta>, which cannot contain frame-ancestors.
      "Content-Security-Policy": `${policy}; frame-ancestors 'none'`,
      ...APPLICATION_HEADERS,
    },
  };
}
