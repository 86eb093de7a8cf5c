/**
 * Builds the reference page at `/docs`: Redoc renders the OpenAPI document that the functions
 * serve. Redoc is one script from npm. After the first fetch it is in the data folder, so that the
 * page needs no network. The policy of the page allows requests to this machine only (ADR 0014).
 */

import { join } from "node:path";
import { runWithPackage } from "../npm_package.ts";
import type { StaticFile, StaticSite } from "./static_site.ts";

const REDOC = {
  name: "redoc",
  version: "3.0.1",
  integrity:
    "sha512-KDfoKaYW19LCl4YStgBnwlaNjYEFfs5zCNt1s1WZ2YM5u8d26Yuzd2l43fZO851ZsgIMe/D640fDJkD8eaRQKQ==",
};
const BUNDLE = `npm:${REDOC.name}@${REDOC.version}/bundles/redoc.standalone.js`;
/** The badge "API docs by Redoc", the only file that Redoc would load from another host. */
const BADGE = "https://cdn.redoc.ly/redoc/logo-mini-full.svg";

const PAGE = new URL("reference_site/index.html", import.meta.url);
const ASSETS: readonly (readonly [name: string, type: string])[] = [
  ["style.css", "text/css; charset=utf-8"],
  ["badge.svg", "image/svg+xml"],
];

/** Redoc creates styles in the page, so inline styles must be allowed. All files are local. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "font-src 'self' data:",
  "connect-src 'self'",
  "worker-src 'self' blob:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

/**
 * Builds the page. Fetches Redoc if the data folder does not have it.
 * @throws {Error} if Redoc cannot be fetched
 */
export async function buildReferenceSite(data_dir: string): Promise<StaticSite> {
  const [page, script, ...assets] = await Promise.all([
    Deno.readTextFile(PAGE),
    readRedoc(data_dir),
    ...ASSETS.map(([name]) => Deno.readFile(new URL(name, PAGE))),
  ]);
  return {
    files: new Map<string, StaticFile>([
      ["index.html", { type: "text/html; charset=utf-8", body: page }],
      ["redoc.js", { type: "text/javascript; charset=utf-8", body: script }],
      ...ASSETS.map(([name, type], index) => [name, { type, body: assets[index]! }] as const),
    ]),
    headers: {
      "Content-Security-Policy": POLICY,
      "X-Content-Type-Options": "nosniff",
      "Referrer-Policy": "no-referrer",
    },
  };
}

/** Fetches Redoc into the data folder if it is missing, so that visits need no network. */
export async function fetchRedoc(data_dir: string, signal?: AbortSignal): Promise<void> {
  const path = redocPath(data_dir);
  if (await Deno.stat(path).then(() => true, () => false)) return;
  const script = `console.log((await import("${BUNDLE}", { with: { type: "text" } })).default)`;
  const text = new TextDecoder().decode(await runWithPackage(REDOC, script, signal));
  // The file is renamed into place, so it is complete or absent.
  const unfinished = `${path}.${crypto.randomUUID().slice(0, 8)}.new`;
  await Deno.writeTextFile(unfinished, text.replaceAll(BADGE, "badge.svg"));
  await Deno.rename(unfinished, path);
}

async function readRedoc(data_dir: string): Promise<Uint8Array<ArrayBuffer>> {
  await fetchRedoc(data_dir);
  return await Deno.readFile(redocPath(data_dir));
}

function redocPath(data_dir: string): string {
  return join(data_dir, `redoc-${REDOC.version}.js`);
}
