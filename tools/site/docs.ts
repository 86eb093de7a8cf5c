/**
 * `deno task docs --base-url <base_url> [--out <folder>]` writes the documentation to a folder, for
 * any static host and any path: the pages, and the reference, which can call the API at this base
 * URL only. CONSOLE_ORIGINS of the functions must contain the origin of the reference, and DOCS_URL
 * is the URL of the folder.
 */

import { buildDocsSite } from "./docs_site.ts";
import { readHostingArguments } from "./hosting_arguments.ts";
import { buildReferenceSite } from "./reference_site.ts";
import { writeHostedSite } from "./site_folder.ts";

/** The folder of the reference in that of the pages, which link to it. */
const REFERENCE = "reference";

if (import.meta.main) {
  const cache = await Deno.makeTempDir({ prefix: "payments-reference-" });
  try {
    const { base_url, folder } = readHostingArguments(Deno.args, "docs", "documentation");
    const [{ files, headers }, reference] = await Promise.all([
      buildDocsSite(null),
      buildReferenceSite(cache, base_url, { is_hosted: true }),
    ]);
    const own = [...reference.files].map(([name, file]) => [`${REFERENCE}/${name}`, file] as const);
    await writeHostedSite({ files: new Map([...files, ...own]), headers }, folder);
    console.log(`Written: ${folder}, the documentation with the reference for ${base_url}`);
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    Deno.exitCode = 1;
  } finally {
    await Deno.remove(cache, { recursive: true });
  }
}
