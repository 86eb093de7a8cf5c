/**
 * Makes everything that a release publishes in `artifacts/release/`, and checks it. Only the upload
 * is missing: .github/workflows/release.yml does it with these files.
 */

import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import CLIENT from "../../packages/client/package.json" with { type: "json" };
import PACKAGE from "../../packages/sandbox/package.json" with { type: "json" };
import { buildPackage, packagesInBundles } from "./package/build.ts";
import { buildClient } from "./package/build_client.ts";
import { runNpmProgram, runProgram } from "../run_program.ts";
import { findUnreleased, hashMigrations, readReleases } from "../schema/releases.ts";
import { SCALAR } from "../site/reference_site.ts";
import { findLicenseProblems, listLicenses, writeBill } from "./bill_of_materials.ts";
import { PUBLICATION, withAbsoluteLinks } from "../publication/publication.ts";
import { NODE_RELEASES, tryArchives } from "./try_archives.ts";
import {
  findVersionDifferences,
  findVersionProblems,
  readChangelogFile,
  readSection,
} from "./version.ts";

const FOLDER = fileURLToPath(new URL("../../artifacts/release", import.meta.url));
const PUBLINT = "publint@0.3.25";
const TYPE_CHECK = "@arethetypeswrong/cli@0.18.5";

/**
 * Makes and checks a release, and prints a line for each part of it.
 * @param version the version of a tag. Null between releases: a release needs more than that, such
 * as a section of the changelog.
 * @throws {Error} with the reasons against the release
 */
export async function checkRelease(version: string | null): Promise<void> {
  const problems = version === null
    ? await findVersionDifferences(PACKAGE.version)
    : await findReleaseProblems(version);
  if (problems.length > 0) throw new Error(problems.join("\n"));
  console.log(`ok  version ${PACKAGE.version}`);
  await Deno.remove(FOLDER, { recursive: true }).catch(() => {});
  await Deno.mkdir(FOLDER, { recursive: true });
  const archives = await makeArchives();
  console.log(`ok  archives: ${archives.map((path) => basename(path)).join(", ")}`);
  const components = await makeBills(archives);
  console.log(`ok  bills of materials, licenses of ${components} packages: licenses.txt`);
  await tryArchives(archives);
  console.log(`ok  installed offline, and took a payment, on Node.js ${NODE_RELEASES.join(", ")}`);
  await writeChecksums();
  await writeNotes(version);
  console.log(`ok  release_notes.txt, SHA256SUMS\nWritten: ${FOLDER}`);
}

/** Returns the reasons against publishing the tag of a version, a sentence for each. */
async function findReleaseProblems(version: string): Promise<string[]> {
  const problems = await findVersionProblems(version);
  const releases = await readReleases();
  const unreleased = findUnreleased(releases, await hashMigrations());
  if (!Object.hasOwn(releases, version) || Object.keys(unreleased).length > 0) {
    problems.push(
      `supabase/releases.json does not have all migrations of ${version}: run ` +
        `"deno task release ${version}" and commit what it writes`,
    );
  }
  // npm would refuse the provenance of a package that states another repository.
  const place = "repository in tools/publication/publication.ts";
  const { repository: stated } = PUBLICATION;
  const [server, built_by] = ["GITHUB_SERVER_URL", "GITHUB_REPOSITORY"].map((n) => Deno.env.get(n));
  if (stated === null) problems.push(`${place} is null: write the address of the repository`);
  else if (built_by !== undefined && `${server}/${built_by}` !== stated) {
    problems.push(`${place} is ${stated}, but ${server}/${built_by} makes the release`);
  }
  return problems;
}

/** Makes the archives of both packages, and checks their entry points and types. */
async function makeArchives(): Promise<[sandbox: string, client: string]> {
  const publication = { ...PUBLICATION, is_published: true };
  const [sandbox, { archive: client, jsr }] = await Promise.all([
    buildPackage(FOLDER, publication),
    buildClient(FOLDER, publication),
  ]);
  await Deno.remove(join(FOLDER, PACKAGE.name), { recursive: true });
  const here = { cwd: FOLDER };
  for (const archive of [sandbox, client]) {
    await runNpmProgram(PUBLINT, ["publint", "--strict", archive], here);
  }
  await runNpmProgram(TYPE_CHECK, ["attw", sandbox], here);
  await runNpmProgram(TYPE_CHECK, ["attw", "--profile", "esm-only", client], here);
  const publish = ["publish", "--dry-run", "--allow-dirty"];
  await runProgram([Deno.execPath(), ...publish], { cwd: jsr });
  return [sandbox, client];
}

/** Writes the bills of materials and the list of licenses. Returns the number of packages in it. */
async function makeBills([sandbox, client]: readonly [string, string]): Promise<number> {
  const billOf = (archive: string) => archive.replace(/\.tgz$/, ".cdx.json");
  const components = [
    // Of Scalar the package has one file, with its dependencies inside.
    ...await writeBill(billOf(sandbox), PACKAGE, [...await packagesInBundles(), SCALAR]),
    ...await writeBill(billOf(client), CLIENT, []),
  ];
  const problems = findLicenseProblems(components);
  if (problems.length > 0) throw new Error(problems.join("\n"));
  await Deno.writeTextFile(join(FOLDER, "licenses.txt"), listLicenses(components));
  return components.length;
}

async function writeNotes(version: string | null): Promise<void> {
  const { repository } = PUBLICATION;
  const section = readSection(await readChangelogFile(), version ?? "Unreleased");
  const base = `${repository}/blob/v${PACKAGE.version}/CHANGELOG.md`;
  const notes = repository === null ? section : withAbsoluteLinks(section, base);
  await Deno.writeTextFile(join(FOLDER, "release_notes.txt"), `${notes}\n`);
}

/** Writes the SHA-256 of each file that is uploaded, in the form of `sha256sum`. */
async function writeChecksums(): Promise<void> {
  const names = [...Deno.readDirSync(FOLDER)].map(({ name }) => name)
    .filter((name) => /\.(tgz|json|txt)$/.test(name)).sort();
  const lines = await Promise.all(names.map(async (name) => {
    const bytes = await Deno.readFile(join(FOLDER, name));
    const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
    return `${digest.toHex()}  ${name}\n`;
  }));
  await Deno.writeTextFile(join(FOLDER, "SHA256SUMS"), lines.join(""));
}
