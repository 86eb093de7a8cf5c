/**
 * The documents say how to get the service in both states of the project: from a clone until a
 * version is published, then from the registries. Only `PUBLICATION` changes.
 */

import assert from "node:assert/strict";
import CLIENT from "../../packages/client/package.json" with { type: "json" };
import PACKAGE from "../../packages/sandbox/package.json" with { type: "json" };
import {
  renderClientReadme,
  renderPackageReadme,
  renderReadme,
  renderTestingPage,
} from "../../tools/generate/installation.ts";
import type { Publication } from "../../tools/publication/publication.ts";
import { readProjectFile } from "../support/documents/project_files.ts";
import { codeBlocks } from "../support/documents/readme_document.ts";

const CLONE: Publication = { repository: null, is_published: false };
const REPOSITORY = "https://example.com/owner/name";
const PUBLISHED: Publication = { repository: REPOSITORY, is_published: true };

/** The documents, with the first command of each in both states. */
const DOCUMENTS = [
  [
    "README.md",
    renderReadme,
    "git clone <the URL of this repository> payments",
    `npx ${PACKAGE.name} start`,
  ],
  [
    "docs/testing.md",
    renderTestingPage,
    "npx -y deno@2.9.6 task package",
    `npm install --save-dev ${PACKAGE.name}`,
  ],
  [
    "packages/sandbox/README.md",
    renderPackageReadme,
    `npx --no-install ${PACKAGE.name} start`,
    `npx ${PACKAGE.name} start`,
  ],
  [
    "packages/client/README.md",
    renderClientReadme,
    'npm pack "$clone/client"',
    `npm install ${CLIENT.name}`,
  ],
] as const;

for (const [path, render, from_clone, from_registry] of DOCUMENTS) {
  Deno.test(`${path} begins with a clone, then with a registry, and back`, async () => {
    const committed = await readProjectFile(path);
    const cloned = render(committed, CLONE);
    const published = render(committed, PUBLISHED);
    const first = (text: string) => codeBlocks(text)[0]!.text.split("\n")[0]!.trim();
    assert.deepEqual([first(cloned), first(published)], [from_clone, from_registry]);
    assert.match(cloned, /[Nn]o registry|from a clone/);
    assert.doesNotMatch(published, /[Nn]o registry|from a clone/);
    assert.equal(render(published, CLONE), cloned);
    assert.equal(render(cloned, PUBLISHED), published);
  });
}

Deno.test("README.md imports the client from the clone, then from npm", async () => {
  const committed = await readProjectFile("README.md");
  const imports = (publication: Publication) =>
    [...renderReadme(committed, publication).matchAll(/^import .* from ("[^"]*client[^"]*");$/gm)]
      .map(([, from]) => JSON.parse(from!));
  assert.deepEqual(imports(CLONE), [
    "../packages/client/webhook_signature.ts",
    "./packages/client/mod.ts",
  ]);
  const from_npm = `npm:${CLIENT.name}`;
  assert.deepEqual(imports(PUBLISHED), [from_npm, from_npm]);
});

Deno.test("README.md clones the repository as soon as it has an address", async () => {
  const committed = await readProjectFile("README.md");
  const [start] = codeBlocks(renderReadme(committed, { ...CLONE, repository: REPOSITORY }));
  assert.equal(start!.text.split("\n")[0], `git clone ${REPOSITORY} payments`);
});
