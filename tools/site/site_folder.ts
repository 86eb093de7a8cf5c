/**
 * Writes a site to a folder: for any host, or for the npm package, which reads it again. The sites
 * of the package are built once, when the package is made.
 */

import { dirname, join } from "node:path";
import type { StaticFile, StaticSite } from "./static_site.ts";

/** Origin of the base URL in the packaged reference. That of the service replaces it. */
export const PACKAGED_ORIGIN = "http://service.invalid";

/** The file of the reference with the code samples. */
const DOCUMENT = "openapi.json";
/** The file with the types and headers of the other files and the headers of every response. */
const INDEX = "site.json";

interface SiteIndex {
  files: Record<string, Omit<StaticFile, "body">>;
  headers: Record<string, string>;
}

/** Writes the files of a site with their types. The folder must not exist. */
export async function writeSiteFolder(site: StaticSite, folder: string): Promise<void> {
  await writeFiles(site, folder);
  const files = Object.fromEntries(
    [...site.files].map(([name, { body: _, ...file }]) => [name, file]),
  );
  const index: SiteIndex = { files, headers: { ...site.headers } };
  await Deno.writeTextFile(join(folder, INDEX), JSON.stringify(index, null, 2));
}

/** Writes the files of a site for any host, with `_headers` for Netlify and Cloudflare Pages. */
export async function writeHostedSite(site: StaticSite, folder: string): Promise<void> {
  await writeFiles(site, folder);
  const own = [...site.files].flatMap(([name, { headers }]) =>
    headers ? pathsOf(name).map((path) => [path, headers] as const) : []
  );
  const text = [["/*", site.headers] as const, ...own].map(([path, headers]) =>
    [path, ...Object.entries(headers).map(([name, value]) => `  ${name}: ${value}`), ""].join("\n")
  );
  await Deno.writeTextFile(join(folder, "_headers"), text.join(""));
}

/** The paths at which hosts serve a file. */
function pathsOf(name: string): string[] {
  return name.endsWith("index.html") ? [`/${name}`, `/${name.slice(0, -10)}`] : [`/${name}`];
}

async function writeFiles(site: StaticSite, folder: string): Promise<void> {
  await Deno.mkdir(folder, { recursive: true });
  for (const [name, { body }] of site.files) {
    const path = join(folder, name);
    await Deno.mkdir(dirname(path), { recursive: true });
    await Deno.writeFile(path, typeof body === "string" ? new TextEncoder().encode(body) : body);
  }
}

/** Reads a folder that `writeSiteFolder` has written. */
export async function readSiteFolder(folder: string): Promise<StaticSite> {
  const index: SiteIndex = JSON.parse(await Deno.readTextFile(join(folder, INDEX)));
  const entries = Object.entries(index.files).map(async ([name, head]) => {
    const file: StaticFile = { ...head, body: await Deno.readFile(join(folder, name)) };
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
