/**
 * Writes a site to a folder and reads it again, for the npm package: its sites are built once, when
 * the package is made.
 */

import { join } from "node:path";
import type { StaticFile, StaticSite } from "./static_site.ts";

/** The file with the types of the other files and the headers of every answer. */
const INDEX = "site.json";

interface SiteIndex {
  types: Record<string, string>;
  headers: Record<string, string>;
}

/** Writes the files of a site. The folder must not exist. */
export async function writeSiteFolder(site: StaticSite, folder: string): Promise<void> {
  await Deno.mkdir(folder, { recursive: true });
  const types: Record<string, string> = {};
  for (const [name, { type, body }] of site.files) {
    types[name] = type;
    const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
    await Deno.writeFile(join(folder, name), bytes);
  }
  const index: SiteIndex = { types, headers: { ...site.headers } };
  await Deno.writeTextFile(join(folder, INDEX), JSON.stringify(index, null, 2));
}

/** Reads a folder that `writeSiteFolder` has written. */
export async function readSiteFolder(folder: string): Promise<StaticSite> {
  const index: SiteIndex = JSON.parse(await Deno.readTextFile(join(folder, INDEX)));
  const entries = Object.entries(index.types).map(async ([name, type]) => {
    const file: StaticFile = { type, body: await Deno.readFile(join(folder, name)) };
    return [name, file] as const;
  });
  return { files: new Map(await Promise.all(entries)), headers: index.headers };
}
