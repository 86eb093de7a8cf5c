/**
 * `supabase/releases.json`: the migrations of each release, with their hashes. A released migration
 * must never change, because existing databases have applied it. They would differ from new ones.
 */

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { listMigrations, MIGRATIONS_DIR } from "../../apps/server/migrations/migrate.ts";

export const RELEASES_FILE = fileURLToPath(
  new URL("../../supabase/releases.json", import.meta.url),
);

/** The SHA-256 of migrations by file name, in hexadecimal. */
type Hashes = Record<string, string>;

/** For each release, oldest first: the migrations that are new in it. */
type Releases = Record<string, Hashes>;

export async function readReleases(): Promise<Releases> {
  return JSON.parse(await Deno.readTextFile(RELEASES_FILE)) as Releases;
}

/** Returns the hash of every migration, in the order of their versions. */
export async function hashMigrations(): Promise<Hashes> {
  const hashes: Hashes = {};
  for (const { file } of await listMigrations(MIGRATIONS_DIR)) {
    const digest = await crypto.subtle.digest(
      "SHA-256",
      await Deno.readFile(join(MIGRATIONS_DIR, file)),
    );
    hashes[file] = new Uint8Array(digest).toHex();
  }
  return hashes;
}

/** Returns the hash of every released migration by file name. */
export function releasedFiles(releases: Releases): Map<string, string> {
  return new Map(Object.values(releases).flatMap((hashes) => Object.entries(hashes)));
}

/** Returns those of the migrations that no release has. */
export function findUnreleased(releases: Releases, present: Hashes): Hashes {
  const released = releasedFiles(releases);
  return Object.fromEntries(Object.entries(present).filter(([file]) => !released.has(file)));
}

/**
 * Finds released migrations that are changed or missing, and new migrations whose version is before
 * a released one. Returns a sentence for each.
 */
export function findBrokenReleases(releases: Releases, present: Hashes): string[] {
  const released = releasedFiles(releases);
  const problems: string[] = [];
  for (const [file, hash] of released) {
    if (present[file] === undefined) {
      problems.push(`${file} is released, but is missing: restore it`);
    } else if (present[file] !== hash) {
      problems.push(
        `${file} is released, but has been edited: restore it and write a new migration`,
      );
    }
  }
  const last = [...released.keys()].sort().at(-1);
  for (const file of Object.keys(findUnreleased(releases, present))) {
    if (last !== undefined && file < last) {
      problems.push(`${file} is not released, but sorts before ${last}: give it a later version`);
    }
  }
  return problems;
}

/**
 * Returns the reasons against `version` as the next release, a sentence for each. It must be later
 * than all releases.
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
