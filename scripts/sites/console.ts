/**
 * `deno task console --base-url <base_url> [--out <folder>]` writes the console to a folder, for
 * any static host. The page can call the API at this base URL only. CONSOLE_ORIGINS of the
 * functions must contain the origin of the page.
 */

import { parseArgs } from "node:util";
import { join, resolve } from "node:path";
import { buildConsoleSite } from "./console_site.ts";
import type { StaticSite } from "./static_site.ts";

const USAGE = "Usage: deno task console --base-url https://<ref>.supabase.co/functions/v1 " +
  "[--out <folder>]";
const DEFAULT_FOLDER = "console_site";

if (import.meta.main) {
  try {
    const { base_url, folder } = readArguments(Deno.args);
    await writeSite(await buildConsoleSite(base_url), folder);
    console.log(`Written: ${folder}, the console for ${base_url}`);
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    Deno.exit(1);
  }
}

function readArguments(args: string[]): { base_url: string; folder: string } {
  const { values } = parseArgs({
    args,
    options: { "base-url": { type: "string" }, out: { type: "string", default: DEFAULT_FOLDER } },
  });
  const url = URL.parse(values["base-url"] ?? "");
  if (url === null) throw new Error(USAGE);
  const is_local = url.hostname === "127.0.0.1" || url.hostname === "localhost";
  if (url.protocol !== "https:" && !(is_local && url.protocol === "http:")) {
    throw new Error(
      `--base-url "${url.href}" cannot be used: it must begin with https://, because the console ` +
        "sends keys to it",
    );
  }
  return { base_url: url.href.replace(/(?<!\/)\/+$/, ""), folder: resolve(values.out) };
}

/** Writes the files of the site, and the file `_headers` for Netlify and Cloudflare Pages. */
async function writeSite(site: StaticSite, folder: string): Promise<void> {
  await Deno.mkdir(folder, { recursive: true });
  for (const [name, { body }] of site.files) {
    const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
    await Deno.writeFile(join(folder, name), bytes);
  }
  const lines = Object.entries(site.headers).map(([name, value]) => `  ${name}: ${value}\n`);
  await Deno.writeTextFile(join(folder, "_headers"), `/*\n${lines.join("")}`);
}
