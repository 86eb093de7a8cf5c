/**
 * The rules of `deno task release --check`. `.ci/nightly` runs the command itself, which makes the
 * archives and installs them.
 */

import assert from "node:assert/strict";
import CLIENT from "../../packages/client/package.json" with { type: "json" };
import PACKAGE from "../../packages/sandbox/package.json" with { type: "json" };
import {
  type Component,
  findLicenseProblems,
  listLicenses,
} from "../../tools/release/bill_of_materials.ts";
import { packagesInBundles } from "../../tools/release/package/build.ts";
import { renderNotices } from "../../tools/release/package/notices.ts";
import { publishedManifest } from "../../tools/publication/publication.ts";
import { NODE_RELEASES } from "../../tools/release/try_archives.ts";
import { readProjectFile } from "../support/documents/project_files.ts";

/** The packages with code in the bundles of the package. */
const BUNDLED = [
  "@modelcontextprotocol/sdk",
  "@noble/curves",
  "@noble/hashes",
  "@preact/signals",
  "@preact/signals-core",
  "@scure/base",
  "@scure/bip32",
  "ajv",
  "ajv-formats",
  "canonicalize",
  "fast-deep-equal",
  "fast-uri",
  "hono",
  "json-schema-traverse",
  "minisearch",
  "postgres",
  "preact",
  "qr",
  "saxes",
  "undici",
  "xmlchars",
  "zod",
  "zod-to-json-schema",
];

const REPOSITORY = "https://example.com/owner/name";

Deno.test("publishedManifest() can be published and names the repository", () => {
  for (
    const [manifest, folder] of [[PACKAGE, "packages/sandbox"], [
      CLIENT,
      "packages/client",
    ]] as const
  ) {
    assert.equal(manifest.private, true, "npm refuses to publish the sources");
    const { private: _, ...members } = manifest;
    assert.deepEqual(publishedManifest(manifest, folder, null), members);
    assert.deepEqual(publishedManifest(manifest, folder, REPOSITORY), {
      ...members,
      repository: { type: "git", url: `git+${REPOSITORY}.git`, directory: folder },
      homepage: `${REPOSITORY}#readme`,
      bugs: `${REPOSITORY}/issues`,
    });
  }
});

Deno.test("packagesInBundles() are those with code in a bundle, without their other dependencies", async () => {
  const packages = await packagesInBundles();
  assert.deepEqual(packages.map(({ name }) => name), BUNDLED);
  const notices = await renderNotices(packages, [["a font", "its license"]]);
  const titles = notices.split(`\n${"-".repeat(80)}\n\n`).map((part) => part.split("\n")[0]);
  assert.deepEqual(titles, [...packages.map((one) => `${one.name} ${one.version}`), "a font"]);
});

/** Licenses of a package, and whether a release may have it. */
const LICENSES: [license: string | null, is_allowed: boolean][] = [
  ["MIT", true],
  ["(GPL-3.0-only OR Apache-2.0)", true],
  ["GPL-3.0-only", false],
  ["MIT AND GPL-3.0-only", false],
  [null, false],
];

for (const [license, is_allowed] of LICENSES) {
  Deno.test(`findLicenseProblems() of a package with the license ${license}`, () => {
    const component: Component = { name: "one", version: "1.0.0", license };
    const problems = findLicenseProblems([component]);
    assert.equal(problems.length, is_allowed ? 0 : 1);
    if (!is_allowed) assert.match(problems[0]!, /^one 1\.0\.0 has the license .*: read it/);
    assert.equal(listLicenses([component, component]).split("\n").length, 2);
  });
}

Deno.test("the packages and docs/versioning.md name the releases of Node.js that are tried", async () => {
  const [oldest] = NODE_RELEASES;
  for (const { engines } of [PACKAGE, CLIENT]) assert.equal(engines.node, `>=${oldest}`);
  const [, named] = /^\| Node\.js +\| ([\d, and]+) for/m
    .exec(await readProjectFile("docs/versioning.md"))!;
  assert.deepEqual(named!.match(/\d+/g)!.map(Number), [...NODE_RELEASES]);
});

for (const name of ["ci", "release"]) {
  Deno.test(`${name}.yml names each action by its commit, and grants no job more than it needs`, async () => {
    const workflow = await readProjectFile(`.github/workflows/${name}.yml`);
    const uses = [...workflow.matchAll(/\buses: (.*)$/gm)].map(([, action]) => action!);
    assert.ok(uses.length >= 3);
    for (const action of uses) {
      assert.match(
        action,
        /^(\.\/\.github\/workflows\/\w+\.yml|[\w-]+\/[\w-]+@[0-9a-f]{40} # v[\d.]+)$/,
      );
    }
    assert.match(workflow, /^permissions:( \{\}|\n {2}contents: read\n)$/m);
    const written = [...workflow.matchAll(/^ {4,}([\w-]+): write\b/gm)].map(([, scope]) => scope);
    assert.deepEqual(written, name === "ci" ? [] : ["id-token", "id-token", "contents"]);
  });
}
