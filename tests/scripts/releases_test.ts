/** Released migrations, versions and the changelog of this tree agree. */

import assert from "node:assert/strict";
import { readReleases } from "../../tools/schema/releases.ts";
import { readChangelog, readVersions } from "../../tools/release/version.ts";

const CHANGELOG = new URL("../../CHANGELOG.md", import.meta.url);
const FIXTURES = new URL("../upgrade/", import.meta.url);

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
