/**
 * Builds the console in memory: `apps/console/main.tsx` bundled by `deno bundle`, the page, its style
 * sheets, and the headers of every response (ADR 0012).
 */

import { bundleScript } from "./bundle_script.ts";
import type { StaticFile, StaticSite } from "./static_site.ts";

const CONSOLE = new URL("../../apps/console/", import.meta.url);
/** Files that are served unchanged, with their types. */
const ASSETS: readonly (readonly [name: string, type: string])[] = [
  ["theme.css", "text/css; charset=utf-8"],
  ["layout.css", "text/css; charset=utf-8"],
  ["controls.css", "text/css; charset=utf-8"],
  ["content.css", "text/css; charset=utf-8"],
  ["icon.svg", "image/svg+xml"],
  ["geist.woff2", "font/woff2"],
  ["geist_license.txt", "text/plain; charset=utf-8"],
];
const PAGE = "index.html";
/** Placeholders in the page, for the base URL of the API and the content security policy. */
const API_PLACE = "{{api-base-url}}";
const POLICY_PLACE = "{{content-security-policy}}";

/**
 * Builds the console.
 * @param base_url base URL of the API, or a path on the origin that serves the page
 * @throws {Error} with the output of `deno bundle` if it fails
 */
export async function buildConsoleSite(base_url: string): Promise<StaticSite> {
  const policy = contentSecurityPolicy(base_url);
  const [page, script, ...assets] = await Promise.all([
    Deno.readTextFile(new URL(PAGE, CONSOLE)),
    bundleScript("apps/console/main.tsx"),
    ...ASSETS.map(([name]) => Deno.readFile(new URL(name, CONSOLE))),
  ]);
  const html = page
    .replace(API_PLACE, escapeAttribute(base_url))
    .replace(POLICY_PLACE, escapeAttribute(policy));
  return {
    files: new Map<string, StaticFile>([
      [PAGE, { type: "text/html; charset=utf-8", body: html }],
      ["main.js", { type: "text/javascript; charset=utf-8", body: script }],
      ...ASSETS.map(([name, type], index) => [name, { type, body: assets[index]! }] as const),
    ]),
    headers: {
      // The page has the same policy in a <meta>, which cannot contain frame-ancestors.
      "Content-Security-Policy": `${policy}; frame-ancestors 'none'`,
      "X-Content-Type-Options": "nosniff",
      "Referrer-Policy": "no-referrer",
      "Cross-Origin-Opener-Policy": "same-origin",
    },
  };
}

/** Allows files of this origin, requests to the API, and no HTML that scripts make from text. */
function contentSecurityPolicy(base_url: string): string {
  const api = base_url.startsWith("/") ? "'self'" : new URL(base_url).origin;
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "font-src 'self'",
    `connect-src ${api}`,
    "base-uri 'none'",
    "form-action 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join("; ");
}

function escapeAttribute(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll('"', "&quot;").replaceAll("<", "&lt;");
}
