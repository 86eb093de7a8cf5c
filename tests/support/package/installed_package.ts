/**
 * The npm package as its users get it: made from the sources, packed, and installed into an empty
 * project. No script of a package runs, because users can forbid them.
 */

import { join } from "node:path";
import { postgresAccount } from "../../../apps/server/postgres/postgres_account.ts";
import { outputOf } from "../common/running_command.ts";
import { withTemporaryFolder } from "../common/temporary_folder.ts";

/** A project with the package. */
export interface InstalledPackage {
  /** The folder of the project. Its name has a space, like those of many users. */
  path: string;
  /** The folder whose `artifacts/` has the archive, as in a clone. */
  clone: string;
  /** The program of the package. */
  program: string;
  /** Variables of every command: an empty cache, and no network beside this machine. */
  env: Record<string, string>;
}

/** A port on which nothing listens: a fetch through such a proxy fails at once. */
const NO_PROXY = "http://127.0.0.1:9";

/** Variables of a command that has no network beside this machine. */
export const OFFLINE: Readonly<Record<string, string>> = {
  HTTP_PROXY: NO_PROXY,
  HTTPS_PROXY: NO_PROXY,
  NO_PROXY: "127.0.0.1,localhost",
  npm_config_offline: "true",
};

/** Installs the package for the work. */
export async function withInstalledPackage(
  work: (installed: InstalledPackage) => Promise<void>,
): Promise<void> {
  await withTemporaryFolder(async (folder) => {
    const path = join(folder, "my project");
    const clone = join(folder, "clone");
    const artifacts = join(clone, "artifacts");
    await Deno.mkdir(artifacts, { recursive: true });
    await Deno.mkdir(path, { recursive: true });
    await Deno.writeTextFile(join(path, "package.json"), '{"private":true,"type":"module"}');
    const build = ["run", "-A", "tools/release/package/build.ts", artifacts];
    const built = await outputOf([Deno.execPath(), ...build]);
    const archive = built.trim().split("/").at(-1)!;
    await install(path, ["--ignore-scripts", join(artifacts, archive)]);
    await work({
      path,
      clone,
      program: join(path, "node_modules/.bin/payments-sandbox"),
      env: { ...OFFLINE, CACHE_DIR: join(folder, "cache") },
    });
  });
}

/** Adds packages of the registry to a project. */
export async function install(path: string, packages: readonly string[]): Promise<void> {
  await outputOf(["npm", "install", "--no-audit", "--no-fund", ...packages], { cwd: path });
}

/** Returns an account other than that of the tests, or null if this account cannot use one. */
export async function otherAccount(): Promise<{ uid: number; gid: number } | null> {
  const account = await postgresAccount();
  return "uid" in account ? account : null;
}

/** The oldest and the newest version of Node that the packages support. */
const NODES = [20, 24] as const;

/** Those of them that are not installed. They are fetched, so only CI tests them. */
export const OTHER_NODES: readonly number[] = Deno.env.get("CI") === undefined
  ? []
  : await otherNodes();

async function otherNodes(): Promise<number[]> {
  const stdout = await outputOf(["node", "-p", "process.versions.node.split('.')[0]"]);
  return NODES.filter((major) => major !== Number(stdout));
}

/** The path of Node of this version, such as 22 or "20.0.0", which npm fetches. */
export async function nodeProgram(version: number | string): Promise<string> {
  const print = ["node", "-p", "process.execPath"];
  const exec = ["npm", "exec", "--yes", `--package=node@${version}`, "--", ...print];
  return (await outputOf(exec)).trim();
}
