/** Released migrations, versions and the changelog of this tree agree. */

import assert from "node:assert/strict";
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
