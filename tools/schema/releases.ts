/**
 * `supabase/releases.json`: the migrations of each release, with their hashes. A released migration
 * must never change, because existing databases have applied it. They would differ from new ones.
 */

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { MigrationFolder } from "../../apps/server/migrations/migration_folder.ts";

/** The path of the file. */
export const RELEASES_FILE = fileURLToPath(
  new URL("../../supabase/releases.json", import.meta.url),
);

/**
 * For each release, oldest first: the migrations that are new in it, as SHA-256 by file name.
 */
type Releases = Record<string, Record<string, string>>;

/** Reads the file. */
export async function readReleases(path: string = RELEASES_FILE): Promise<Releases> {
  return JSON.parse(await Deno.readTextFile(path)) as Releases;
}

/** Returns the hash of every released migration by file name. Ends with the release `last`. */
export function releasedFiles(releases: Releases, last?: string): Map<string, string> {
  const files = new Map<string, string>();
  for (const [release, hashes] of Object.entries(releases)) {
    for (const [file, hash] of Object.entries(hashes)) files.set(file, hash);
    if (release === last) break;
  }
  return files;
}

/**
 * Finds released migrations that are changed or missing in the folder, and new migrations whose
 * version is before a released one. Returns a sentence for each.
 */
export async function findBrokenReleases(
  releases: Releases,
  folder: MigrationFolder,
): Promise<string[]> {
  const released = releasedFiles(releases);
  const problems: string[] = [];
  const present = new Set(folder.migrations.map(({ file }) => file));
  for (const [file, hash] of released) {
    if (!present.has(file)) problems.push(`${file} is released, but is missing: restore it`);
    else if (await sha256(await folder.read(file)) !== hash) {
      problems.push(
        `${file} is released, but has been edited: restore it and write a new migration`,
      );
    }
  }
  const last = [...released.keys()].sort().at(-1);
  for (const { file } of folder.migrations) {
    if (last !== undefined && !released.has(file) && file < last) {
      problems.push(`${file} is not released, but sorts before ${last}: give it a later version`);
    }
  }
  return problems;
}

/**
 * Returns the reasons against `version` as the next release, a sentence for each. It must be later
 * than all releases, because the upgrade test relies on the order of the file.
 */
export function findOrderProblems(releases: Releases, version: string): string[] {
  if (Object.hasOwn(releases, version)) return [`${version} is released already`];
  return Object.keys(releases).filter((release) => compareVersions(version, release) < 0)
    .map((release) => `${release} is released: ${version} must be a later version`);
}

function compareVersions(a: string, b: string): number {
  const [x, y] = [a, b].map((version) => version.split(".").map(Number));
  return x!.map((part, i) => part - y![i]!).find((difference) => difference !== 0) ?? 0;
}

/** Returns the hashes of the migrations that no release has, by file name. */
export async function hashUnreleased(
  releases: Releases,
  folder: MigrationFolder,
): Promise<Record<string, string>> {
  const released = releasedFiles(releases);
  const hashes: Record<string, string> = {};
  for (const { file } of folder.migrations) {
    if (!released.has(file)) hashes[file] = await sha256(await folder.read(file));
  }
  return hashes;
}

/** Runs `work` with the path of a temporary folder that holds the migrations of a release. */
export async function withReleaseMigrations<T>(
  folder: string,
  releases: Releases,
  release: string,
  work: (folder: string) => Promise<T>,
): Promise<T> {
  const copy = await Deno.makeTempDir({ prefix: `payments-${release}-` });
  try {
    for (const file of releasedFiles(releases, release).keys()) {
      await Deno.copyFile(join(folder, file), join(copy, file));
    }
    return await work(copy);
  } finally {
    await Deno.remove(copy, { recursive: true });
  }
}

async function sha256(text: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return new Uint8Array(digest).toHex();
}
