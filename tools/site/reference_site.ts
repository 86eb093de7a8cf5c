/**
 * Builds the reference page at `/docs/reference/`: Scalar renders the OpenAPI document with code
 * samples, and sends requests with the reader's test key, which it takes from its link or from an
 * open console. Scalar is one script from npm. After the first fetch it is in the data folder, so
 * that the page needs no network. The policy of the page allows requests to the service only (ADR
 * 0012).
 */

import { join } from "node:path";
import { runWithPackage } from "../npm_package.ts";
import { CONSOLE, DOCS_HEADERS, fileOf, readAssets } from "./assets.ts";
import type { StaticSite } from "./static_site.ts";

/** The npm package of Scalar. Its script has its dependencies in it. */
export const SCALAR = {
  name: "@scalar/api-reference",
  version: "1.72.1",
  license: "MIT",
  integrity:
    "sha512-XpEJ0rfc/cXbCrR+iC4kK0o/WwX2dTtGQbT049OlPKAHD6IMIFdTeGz2r+M27P2EDWKyUITRm/NzlP8z2pw/Ow==",
};
/** A file that the package exports. The script for pages is beside it, and is not exported. */
const EXPORTED = `npm:${SCALAR.name}@${SCALAR.version}/style.css`;
const SCRIPT = "browser/standalone.js";

const FOLDER = new URL("reference_site/", import.meta.url);
const PAGE = "index.html";
const POLICY_PLACE = "{{content-security-policy}}";
const CONSOLE_PLACE = "<!-- console-link -->";
const CONSOLE_LINK = '<a href="../../console/">Console</a>';

/**
 * Builds the page. Fetches Scalar if the data folder does not have it.
 * @param base_url base URL of the service
 * @param options.is_hosted false, the default: the service and the console have the origin of the
 * page. True: the page is on another host, without a console
 * @throws {Error} if Scalar cannot be fetched
 */
export async function buildReferenceSite(
  data_dir: string,
  base_url: string,
  { is_hosted = false }: { is_hosted?: boolean } = {},
): Promise<StaticSite> {
  const { origin, pathname } = new URL(base_url);
  // It is large, and the first visit needs it.
  const { buildReferenceDocument } = await import("./reference_document.ts");
  const [script, document, page, own, shared, bar] = await Promise.all([
    fetchScalar(data_dir).then(() => Deno.readFile(scalarPath(data_dir))),
    buildReferenceDocument(base_url, is_hosted ? base_url : pathname),
    Deno.readTextFile(new URL(PAGE, FOLDER)),
    readAssets(FOLDER, ["page.js", "style.css"]),
    readAssets(CONSOLE, ["theme.css", "icon.svg", "geist.woff2"]),
    readAssets(new URL("docs_site/", import.meta.url), ["bar.css"]),
  ]);
  const html = page
    .replace(POLICY_PLACE, policyFor(is_hosted ? `'self' ${origin}` : "'self'"))
    .replace(CONSOLE_PLACE, is_hosted ? "" : CONSOLE_LINK);
  return {
    files: new Map([
      [PAGE, fileOf(PAGE, html)],
      ["scalar.js", fileOf("scalar.js", script)],
      ["openapi.json", fileOf("openapi.json", JSON.stringify(document))],
      ...own,
      ...shared,
      ...bar,
    ]),
    headers: DOCS_HEADERS,
  };
}

/** Scalar creates styles in the page, so inline styles must be allowed. All files are local. */
function policyFor(callable: string): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data:",
    "font-src 'self' data:",
    `connect-src ${callable}`,
    "worker-src 'self' blob:",
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; ");
}

/** Fetches Scalar into the data folder if it is missing, so that visits need no network. */
export async function fetchScalar(data_dir: string, signal?: AbortSignal): Promise<void> {
  const path = scalarPath(data_dir);
  if (await Deno.stat(path).then(() => true, () => false)) return;
  const script = `await import("${EXPORTED}", { with: { type: "text" } });
    const url = new URL("${SCRIPT}", import.meta.resolve("${EXPORTED}"));
    for (let rest = await Deno.readFile(url); rest.length > 0;) {
      rest = rest.subarray(await Deno.stdout.write(rest));
    }`;
  const text = await runWithPackage(SCALAR, script, signal);
  // The file is renamed into place, so it is complete or absent.
  const unfinished = `${path}.${crypto.randomUUID().slice(0, 8)}.new`;
  await Deno.writeFile(unfinished, text);
  await Deno.rename(unfinished, path);
}

function scalarPath(data_dir: string): string {
  return join(data_dir, `scalar-${SCALAR.version}.js`);
}
