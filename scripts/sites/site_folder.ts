/**
 * Writes a site to a folder and reads it again, for the npm package: its sites are built once, when
 * the package is made.
 */

import { join } from "node:path";
import type { StaticFile, StaticSite } from "./static_site.ts";

/** Origin of the base URL in the packaged reference. That of the service replaces it. */
export const PACKAGED_ORIGIN = "http://service.invalid";

/** The file of the reference with the code samples. */
const DOCUMENT = "openapi.json";
/** The file with the types of the other files and the headers of every response. */
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

/**
 * Reads the reference that the build has written.
 * @param base_url base URL of the service, for the code samples
 */
export async function readReferenceFolder(folder: string, base_url: string): Promise<StaticSite> {
  const { files, headers } = await readSiteFolder(folder);
  const { type, body } = files.get(DOCUMENT)!;
  const text = new TextDecoder().decode(body as Uint8Array);
  const document = { type, body: text.replaceAll(PACKAGED_ORIGIN, new URL(base_url).origin) };
  return { files: new Map([...files, [DOCUMENT, document]]), headers };
}
