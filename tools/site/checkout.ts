/**
 * `deno task checkout --base-url <base_url> [--out <folder>]` writes the page for payers to a
 * folder, for any static host that can send headers of its own. The page can call the API at this
 * base URL only. CHECKOUT_URL of the functions is the URL of the page.
 */

import { buildCheckoutSite } from "./checkout_site.ts";
import { readHostingArguments } from "./hosting_arguments.ts";
import { writeHostedSite } from "./site_folder.ts";

if (import.meta.main) {
  try {
    const { base_url, folder } = readHostingArguments(Deno.args, "checkout", "checkout_site");
    await writeHostedSite(await buildCheckoutSite(base_url), folder);
    console.log(`Written: ${folder}, the page for payers of ${base_url}`);
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    Deno.exit(1);
  }
}
