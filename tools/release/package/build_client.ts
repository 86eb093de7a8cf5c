/** Makes the archive of the client for npm, and its folder for JSR. */

import { cp } from "node:fs/promises";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { renderClientReadme } from "../../generate/installation.ts";
import type { Publication } from "../../publication/publication.ts";
import { writeManifestAndPage } from "./manifest_and_page.ts";
import { packFolder } from "../../run_program.ts";

const CLIENT_DIR = fileURLToPath(new URL("../../../packages/client/", import.meta.url));
/** Folders of `packages/client/` that are not sources. */
const LEFT_OUT = new Set(["dist", "node_modules"]);

/**
 * Makes the client as registries get it.
 * @param parent the folder for the archive, and for the folder `jsr`
 * @returns the paths of both
 */
export async function buildClient(
  parent: string,
  publication: Publication,
): Promise<{ archive: string; jsr: string }> {
  const jsr = join(parent, "jsr");
  await cp(CLIENT_DIR, jsr, { recursive: true, filter: (path) => !LEFT_OUT.has(basename(path)) });
  await writeManifestAndPage(jsr, "packages/client", renderClientReadme, publication);
  const archive = await packFolder(jsr, parent);
  await Deno.remove(join(jsr, "dist"), { recursive: true });
  return { archive, jsr };
}
