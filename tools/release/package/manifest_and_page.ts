/** package.json and README.md of a package, as its users get them. */

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import {
  type Manifest,
  type Publication,
  publishedManifest,
  withAbsoluteLinks,
} from "../../publication/publication.ts";

const PROJECT_DIR = fileURLToPath(new URL("../../../", import.meta.url));

/**
 * Writes both files to a folder.
 * @param source the folder of the package in the repository
 * @param render writes the installation into the page
 */
export async function writeManifestAndPage(
  folder: string,
  source: string,
  render: (page: string, publication: Publication) => string,
  publication: Publication,
): Promise<void> {
  const read = (name: string) => Deno.readTextFile(join(PROJECT_DIR, source, name));
  const write = (name: string, text: string) => Deno.writeTextFile(join(folder, name), text);
  const { is_published, repository } = publication;
  const manifest: Manifest & { version: string } = JSON.parse(await read("package.json"));
  const shown = is_published ? publishedManifest(manifest, source, repository) : manifest;
  await write("package.json", `${JSON.stringify(shown, null, 2)}\n`);
  const page = render(await read("README.md"), publication);
  const path = `${source}/README.md`;
  await write(
    "README.md",
    repository === null
      ? page
      : withAbsoluteLinks(page, `${repository}/blob/v${manifest.version}/${path}`),
  );
}
