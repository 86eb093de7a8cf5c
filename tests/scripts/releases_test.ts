/** Released migrations, versions and the changelog of this tree agree. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { MIGRATIONS_DIR } from "../../apps/server/migrations/migrate.ts";
import { readMigrationFolder } from "../../apps/server/migrations/migration_folder.ts";
import {
  findBrokenReleases,
  findOrderProblems,
  hashUnreleased,
  readReleases,
  releasedFiles,
  type Releases,
} from "../../tools/schema/releases.ts";
import { readChangelog, readVersions } from "../../tools/release/version.ts";
import { testServer } from "../support/database/database.ts";
import { PROJECT_DIR } from "../support/local/local_start.ts";

const CHANGELOG = new URL("../../CHANGELOG.md", import.meta.url);
const FIXTURES = new URL("../upgrade/", import.meta.url);

Deno.test("released migrations are present, unchanged and before all others", async () => {
  const folder = await readMigrationFolder(MIGRATIONS_DIR);
  assert.deepEqual(await findBrokenReleases(await readReleases(), folder), []);
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

const FILES = { "1_a.sql": "select 1;", "2_b.sql": "select 2;" };

/** Changes of a folder with two released migrations, and the problems that they cause. */
const BREACHES: [name: string, change: Record<string, string | null>, problems: RegExp[]][] = [
  ["nothing", {}, []],
  ["a later migration", { "3_c.sql": "select 3;" }, []],
  ["an edited one", { "1_a.sql": "select 1; " }, [/^1_a\.sql is released, but has been edited/]],
  ["a missing one", { "2_b.sql": null }, [/^2_b\.sql is released, but is missing: restore it$/]],
  ["a renamed one", { "2_b.sql": null, "2_c.sql": FILES["2_b.sql"] }, [
    /^2_b\.sql .* missing: restore it$/,
  ]],
  [
    "one in between",
    { "11_b.sql": "select 3;" },
    [/^11_b\.sql is not released, but sorts before 2_b\.sql/],
  ],
];

for (const [name, change, problems] of BREACHES) {
  Deno.test(`findBrokenReleases() after ${name}`, () =>
    withFolder(async (folder, releases) => {
      for (const [file, text] of Object.entries(change)) {
        if (text === null) await Deno.remove(join(folder, file));
        else await Deno.writeTextFile(join(folder, file), text);
      }
      const found = await findBrokenReleases(releases, await readMigrationFolder(folder));
      assert.equal(found.length, problems.length, found.join("\n"));
      for (const [i, problem] of problems.entries()) assert.match(found[i]!, problem);
    }));
}

/** Versions after the releases 1.0.0 and 1.10.0, and their problems. */
const ORDER: [version: string, problems: string[]][] = [
  ["1.10.1", []],
  ["1.11.0", []],
  ["2.0.0", []],
  ["1.10.0", ["1.10.0 is released already"]],
  ["1.9.0", ["1.10.0 is released: 1.9.0 must be a later version"]],
  [
    "0.20.0",
    ["1.0.0", "1.10.0"].map((release) => `${release} is released: 0.20.0 must be a later version`),
  ],
];

for (const [version, problems] of ORDER) {
  Deno.test(`findOrderProblems() of ${version} after 1.10.0`, () => {
    assert.deepEqual(findOrderProblems({ "1.0.0": {}, "1.10.0": {} }, version), problems);
  });
}

Deno.test("releasedFiles() includes the files of earlier releases", () => {
  const releases = { "1.0.0": { a: "1" }, "1.1.0": { b: "2" }, "2.0.0": { c: "3" } };
  assert.deepEqual([...releasedFiles(releases, "1.1.0").keys()], ["a", "b"]);
  assert.deepEqual([...releasedFiles(releases).keys()], ["a", "b", "c"]);
});

Deno.test("hashUnreleased() hashes only unreleased files", () =>
  withFolder(async (folder, releases) => {
    await Deno.writeTextFile(join(folder, "3_c.sql"), "");
    assert.deepEqual(await hashUnreleased(releases, await readMigrationFolder(folder)), {
      "3_c.sql": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    });
  }));

/** Commands that change nothing: script, arguments, exit code and message. */
const REFUSED: [script: string, args: string[], code: number, said: RegExp][] = [
  ["release/release", [], 2, /^Usage: deno task release VERSION/],
  ["release/release", ["v1"], 2, /^Usage: deno task release VERSION/],
  ["release/release", ["--check", "v1"], 2, /^Usage: deno task release VERSION/],
  [
    "release/release",
    ["--check", "99.0.0"],
    1,
    /^deno\.json has version .*CHANGELOG\.md has no .*supabase\/releases\.json does not .*99\.0\.0/s,
  ],
  [
    "release/release",
    ["99.0.0"],
    1,
    /^deno\.json has version .*, not 99\.0\.0\n.*CHANGELOG\.md has no .*\n99\.0\.0 was not released$/s,
  ],
  [
    "schema/schema_dump",
    ["--release"],
    2,
    /^Usage: deno task schema \[--check \| --release NAME\]/,
  ],
  ["schema/schema_dump", ["--chekc"], 2, /^Usage: deno task schema/],
  ["schema/schema_dump", ["--check", "now"], 2, /^Usage: deno task schema/],
  [
    "schema/schema_dump",
    ["--release", "a-b"],
    1,
    /^--release "a-b": the name of a migration must only/,
  ],
];

for (const [script, args, code, said] of REFUSED) {
  Deno.test(`apps/${script}.ts ${args.join(" ")} is refused`, async () => {
    const output = await new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", "--quiet", `apps/${script}.ts`, ...args],
      cwd: PROJECT_DIR,
      env: { TEST_DATABASE_URL: testServer().superuser_url },
      stdin: "null",
    }).output();
    assert.equal(output.code, code);
    assert.match(new TextDecoder().decode(output.stderr).trim(), said);
    assert.equal(new TextDecoder().decode(output.stdout), "");
  });
}

async function withFolder(work: (folder: string, releases: Releases) => Promise<void>) {
  const folder = await Deno.makeTempDir({ prefix: "payments-test-" });
  try {
    for (const [file, text] of Object.entries(FILES)) {
      await Deno.writeTextFile(join(folder, file), text);
    }
    await work(folder, { "1.0.0": await hashUnreleased({}, await readMigrationFolder(folder)) });
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}
