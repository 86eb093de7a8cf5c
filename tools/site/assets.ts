/** Files that sites serve unchanged, and the types of files. */

import type { StaticFile } from "./static_site.ts";

/** The folder of the console, whose colours, font and icon the other sites have too. */
export const CONSOLE = new URL("../../apps/console/", import.meta.url);

const TYPES: Readonly<Record<string, string>> = {
  css: "text/css; charset=utf-8",
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  json: "application/json",
  png: "image/png",
  svg: "image/svg+xml",
  woff2: "font/woff2",
};

/** Headers of every response of an application: another page cannot look into its window. */
export const APPLICATION_HEADERS: Readonly<Record<string, string>> = {
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
  "Cross-Origin-Opener-Policy": "same-origin",
};

/** Headers of every response of the documentation. The policy of the content is in the pages. */
export const DOCS_HEADERS: Readonly<Record<string, string>> = {
  "Content-Security-Policy": "frame-ancestors 'none'",
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
};

/** Allows files of this origin, these requests, and no HTML that scripts make from text. */
export function pagePolicy(connect: string): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "font-src 'self'",
    `connect-src ${connect}`,
    "base-uri 'none'",
    "form-action 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join("; ");
}

/** Returns a file with the type of its name; by default it is a text. */
export function fileOf(name: string, body: StaticFile["body"]): StaticFile {
  return { type: TYPES[name.split(".").at(-1)!] ?? "text/plain; charset=utf-8", body };
}

export function readAssets(folder: URL, names: readonly string[]): Promise<[string, StaticFile][]> {
  return Promise.all(
    names.map(async (name) => [name, fileOf(name, await Deno.readFile(new URL(name, folder)))]),
  );
}
