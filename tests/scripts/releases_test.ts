/**
 * Released migrations, versions and the changelog of this tree agree, and the rules of
 * `deno task release --check`. `.ci/nightly` runs the command itself, which makes the archives and
 * installs them.
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
import {
  findBrokenReleases,
  findOrderProblems,
  readReleases,
} from "../../tools/schema/releases.ts";
import { readChangelog, readVersions } from "../../tools/release/version.ts";

const CHANGELOG = new URL("../../CHANGELOG.md", import.meta.url);
const FIXTURES = new URL("../upgrade/", import.meta.url);

const RELEASES = { "1.0.0": { "1_a.sql": "x", "2_b.sql": "y" }, "1.1.0": { "3_c.sql": "z" } };
/** The migrations that are present, and what is wrong with them. */
const PRESENT: [hashes: Record<string, string>, problems: RegExp[]][] = [
  [{ "1_a.sql": "x", "2_b.sql": "y", "3_c.sql": "z", "4_d.sql": "" }, []],
  [{ "1_a.sql": "x", "3_c.sql": "z" }, [/^2_b\.sql is released, but is missing/]],
  [
    { "1_a.sql": "w", "2_b.sql": "y", "3_c.sql": "z" },
    [/^1_a\.sql is released, but has been edited/],
  ],
  [
    { "1_a.sql": "x", "2_b.sql": "y", "21_e.sql": "", "3_c.sql": "z" },
    [/^21_e\.sql is not released, but sorts before 3_c\.sql/],
  ],
];

Deno.test("findBrokenReleases() finds what has changed behind a release", () => {
  for (const [hashes, problems] of PRESENT) {
    const found = findBrokenReleases(RELEASES, hashes);
    assert.equal(found.length, problems.length, found.join());
    for (const [i, problem] of problems.entries()) assert.match(found[i]!, problem);
  }
});

Deno.test("findOrderProblems() refuses a version that is not later than all", () => {
  for (const version of ["1.1.1", "1.2.0", "2.0.0", "1.10.0"]) {
    assert.deepEqual(findOrderProblems(RELEASES, version), []);
  }
  for (const version of ["1.1.0", "1.0.1", "0.9.0"]) {
    assert.notDeepEqual(findOrderProblems(RELEASES, version), []);
  }
});

Deno.test("every release has a fixture and a section of the changelog", async () => {
  const sections = readChangelog(await Deno.readTextFile(CHANGELOG)).map(({ version }) => version);
  for (const release of Object.keys(await readReleases())) {
    assert.ok(sections.includes(release), release);
    for (const extension of ["sql", "json"]) {
      assert.ok((await Deno.stat(new URL(`${release}.${extension}`, FIXTURES))).isFile);
    }
  }
});

Deno.test("all packages have one version: that of the newest release, if there is one", async () => {
  const [newest] = readChangelog(await Deno.readTextFile(CHANGELOG));
  const versions = Object.values(await readVersions());
  assert.ok(versions.length >= 5);
  assert.deepEqual(new Set(versions), new Set([newest?.version ?? versions[0]]));
  assert.match(versions[0]!, /^\d+\.\d+\.\d+$/);
});

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
