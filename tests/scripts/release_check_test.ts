/**
 * The rules of `deno task release --check`. `.ci/run` runs the command itself, which makes the
 * archives and installs them.
 */

import assert from "node:assert/strict";
import CLIENT from "../../packages/client/package.json" with { type: "json" };
import PACKAGE from "../../packages/sandbox/package.json" with { type: "json" };
import {
  billOfParts,
  type Component,
  findLicenseProblems,
  listLicenses,
} from "../../tools/release/bill_of_materials.ts";
import { packagesInBundles } from "../../tools/release/package/build.ts";
import { renderNotices } from "../../tools/release/package/notices.ts";
import { findRepositoryProblems } from "../../tools/release/check_release.ts";
import { publishedManifest, withAbsoluteLinks } from "../../tools/publication/publication.ts";
import { NODE_RELEASES } from "../../tools/release/try_archives.ts";
import { readSection } from "../../tools/release/version.ts";
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

const ADDRESS = `${REPOSITORY}/blob/v1.0.0/client/README.md`;
for (
  const [link, absolute] of [
    ["[a](../docs/testing.md#jest)", `[a](${REPOSITORY}/blob/v1.0.0/docs/testing.md#jest)`],
    ["[a](mod.ts)", `[a](${REPOSITORY}/blob/v1.0.0/client/mod.ts)`],
    ["[a](#errors)", "[a](#errors)"],
    ["[a](https://nodejs.org)", "[a](https://nodejs.org)"],
  ] as const
) {
  Deno.test(`withAbsoluteLinks() of ${link}`, () => {
    assert.equal(withAbsoluteLinks(`x ${link} y`, ADDRESS), `x ${absolute} y`);
  });
}

for (
  const [stated, built_by, problem] of [
    [REPOSITORY, REPOSITORY, null],
    [REPOSITORY, null, null],
    [null, null, /publication\.ts is null: write the address of the repository$/],
    [REPOSITORY, "https://example.com/fork/name", /is .*owner\/name, but .*fork\/name makes/],
  ] as const
) {
  Deno.test(`findRepositoryProblems() of ${stated}, built by ${built_by}`, () => {
    const problems = findRepositoryProblems(stated, built_by);
    assert.equal(problems.length, problem === null ? 0 : 1);
    if (problem !== null) assert.match(problems[0]!, problem);
  });
}

Deno.test("packagesInBundles() are those with code in a bundle, without their other dependencies", async () => {
  const packages = await packagesInBundles();
  assert.deepEqual(packages.map(({ name }) => name), BUNDLED);
  const notices = await renderNotices(packages, [["a font", "its license"]]);
  const titles = notices.split(`\n${"-".repeat(80)}\n\n`).map((part) => part.split("\n")[0]);
  assert.deepEqual(titles, [...packages.map((one) => `${one.name} ${one.version}`), "a font"]);
});

Deno.test("billOfParts() has the bundled and installed packages, and no reference to others", () => {
  const component = (name: string) => ({ name, version: "1.0.0", "bom-ref": `${name}@1.0.0` });
  const bill = {
    components: [component("bundled"), component("unused"), component("installed")],
    dependencies: [
      { ref: "package@1.0.0", dependsOn: ["bundled@1.0.0", "installed@1.0.0"] },
      { ref: "bundled@1.0.0", dependsOn: ["unused@1.0.0"] },
      { ref: "unused@1.0.0", dependsOn: [] },
    ],
  };
  assert.deepEqual(billOfParts(bill, [component("bundled")], ["installed"]), {
    components: [component("bundled"), component("installed")],
    dependencies: [
      { ref: "package@1.0.0", dependsOn: ["bundled@1.0.0", "installed@1.0.0"] },
      { ref: "bundled@1.0.0", dependsOn: [] },
    ],
  });
  const newer = { name: "bundled", version: "2.0.0" };
  assert.throws(() => billOfParts(bill, [newer], ["installed"]), /does not: bundled 2\.0\.0$/);
});

const CHANGELOG =
  "# Changelog\n\n## [Unreleased]\n\n- b\n\n## [1.0.0] - 2026-01-02\n\n### Added\n- a\n";
for (
  const [title, section] of [
    ["Unreleased", "- b"],
    ["1.0.0", "### Added\n- a"],
    ["1.0.1", ""],
  ] as const
) {
  Deno.test(`readSection() of ${title}`, () => {
    assert.equal(readSection(CHANGELOG, title), section);
  });
}

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
