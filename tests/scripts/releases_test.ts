/**
 * Rules of a release: licenses, releases of Node.js and workflows. `.ci/nightly` runs
 * `deno task release --check`, which makes the archives, checks the versions and installs them.
 */

import assert from "node:assert/strict";
import CLIENT from "../../packages/client/package.json" with { type: "json" };
import PACKAGE from "../../packages/sandbox/package.json" with { type: "json" };
import {
  type Component,
  findLicenseProblems,
  listLicenses,
} from "../../tools/release/bill_of_materials.ts";
import { NODE_RELEASES } from "../../tools/release/try_archives.ts";
import { readProjectFile } from "../support/documents/project_files.ts";

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
