/**
 * `deno task console --base-url <base_url> [--out <folder>]` writes the console to a folder, for
 * any static host. The page can call the API at this base URL only. CONSOLE_ORIGINS of the
 * functions must contain the origin of the page.
 */

import { buildConsoleSite } from "./console_site.ts";
import { readHostingArguments } from "./hosting_arguments.ts";
import { writeHostedSite } from "./site_folder.ts";

if (import.meta.main) {
  try {
    const { base_url, folder } = readHostingArguments(Deno.args, "console", "console_site");
    await writeHostedSite(await buildConsoleSite(base_url), folder);
    console.log(`Written: ${folder}, the console for ${base_url}`);
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    Deno.exit(1);
  }
}
