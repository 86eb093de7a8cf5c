/**
 * The documents as they are before a version is published. Tests run these, because they use the
 * code of this clone, and not that of a registry.
 */

import {
  renderClientReadme,
  renderReadme,
  renderTestingPage,
} from "../../../tools/generate/installation.ts";
import type { Publication } from "../../../tools/publication/publication.ts";
import { readProjectFile } from "./project_files.ts";

const CLONE: Publication = { repository: null, is_published: false };

/** The documents that differ. */
const RENDER = new Map([
  ["README.md", renderReadme],
  ["packages/client/README.md", renderClientReadme],
  ["docs/testing.md", renderTestingPage],
]);

/** The text of a document, by its path in the project. */
export async function readCloneDocument(path: string): Promise<string> {
  const committed = await readProjectFile(path);
  return RENDER.get(path)?.(committed, CLONE) ?? committed;
}
