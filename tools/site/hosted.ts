/**
 * `deno task console`, `checkout` and `docs`, each with `--base-url <base_url> [--out <folder>]`,
 * write a site to a folder, for any static host. The page for payers needs a host that can send
 * headers of its own. A page can call the API at this base URL only: CONSOLE_ORIGINS of the
 * functions must contain the origin of the console and of the reference. CHECKOUT_URL is the URL of
 * the page for payers, and DOCS_URL that of the documentation.
 */

import { parseArgs } from "node:util";
import { resolve } from "node:path";
import { buildCheckoutSite } from "./checkout_site.ts";
import { buildConsoleSite } from "./console_site.ts";
import { buildDocsSite } from "./docs_site.ts";
import { buildReferenceSite } from "./reference_site.ts";
import { writeHostedSite } from "./site_folder.ts";
import type { StaticSite } from "./static_site.ts";

interface HostedSite {
  /** In the line that the command prints, before the base URL. */
  words: string;
  /** The folder without `--out`. */
  folder: string;
  build(base_url: string): Promise<StaticSite>;
}

const SITES: Readonly<Record<string, HostedSite>> = {
  console: { words: "the console for", folder: "console_site", build: buildConsoleSite },
  checkout: {
    words: "the page for payers of",
    folder: "checkout_site",
    build: buildCheckoutSite,
  },
  docs: {
    words: "the documentation with the reference for",
    folder: "documentation",
    build: buildDocumentation,
  },
};

if (import.meta.main) {
  try {
    const [name, ...args] = Deno.args;
    await writeSite(name!, args);
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    Deno.exitCode = 1;
  }
}

/** Throws an `Error` for people if the base URL is missing or must get no keys. */
async function writeSite(name: string, args: string[]): Promise<void> {
  const { words, folder, build } = SITES[name]!;
  const { values } = parseArgs({
    args,
    options: { "base-url": { type: "string" }, out: { type: "string", default: folder } },
  });
  const url = URL.parse(values["base-url"] ?? "");
  if (url === null) {
    throw new Error(
      `Usage: deno task ${name} --base-url https://<ref>.supabase.co/functions/v1 [--out <folder>]`,
    );
  }
  const is_local = url.hostname === "127.0.0.1" || url.hostname === "localhost";
  if (url.protocol !== "https:" && !(is_local && url.protocol === "http:")) {
    throw new Error(
      `--base-url "${url.href}" cannot be used: it must begin with https://, because the page ` +
        "sends keys to it",
    );
  }
  const [base_url, out] = [url.href.replace(/(?<!\/)\/+$/, ""), resolve(values.out)];
  await writeHostedSite(await build(base_url), out);
  console.log(`Written: ${out}, ${words} ${base_url}`);
}

/** The pages, and the reference below them, to which they link. */
async function buildDocumentation(base_url: string): Promise<StaticSite> {
  const cache = await Deno.makeTempDir({ prefix: "payments-reference-" });
  try {
    const [{ files, headers }, reference] = await Promise.all([
      buildDocsSite(null),
      buildReferenceSite(cache, base_url, { is_hosted: true }),
    ]);
    const own = [...reference.files].map(([name, file]) => [`reference/${name}`, file] as const);
    return { files: new Map([...files, ...own]), headers };
  } finally {
    await Deno.remove(cache, { recursive: true });
  }
}
