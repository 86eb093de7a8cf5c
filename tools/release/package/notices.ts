/** The licenses of the npm packages that the bundles contain. Their authors ask to be named. */

import { join } from "node:path";
import { runProgram } from "../../run_program.ts";

/** A module with its imports, as one script of the package. */
export interface Bundle {
  /** Path in the project. */
  entry: string;
  platform: "browser" | "deno";
}

/** The parts of the output of `deno info --json` that are read. */
interface ModuleGraph {
  npmPackages: Record<string, InstalledPackage>;
}

/** An npm package in the cache of Deno. */
interface InstalledPackage {
  name: string;
  version: string;
  localPath: string;
}

/** The line with the path of a module, which the bundler writes before its code. */
const MODULE_LINE = /^\/\/ (.+)$/gm;
const LICENSE_FILE = /^(licen[cs]e|copying|unlicense)(\.\w+)?$/i;

/**
 * Returns the npm packages that have code in these bundles, sorted by name. Many dependencies of a
 * package have none, because the bundler leaves out modules that nothing uses.
 */
export async function bundledPackages(
  project_dir: string,
  bundles: readonly Bundle[],
): Promise<InstalledPackage[]> {
  const found = new Map<string, InstalledPackage>();
  for (const { entry, platform } of bundles) {
    const run = (...args: string[]) => runProgram([Deno.execPath(), ...args], { cwd: project_dir });
    // A minified bundle and its source map do not name every package.
    const script = await run("bundle", "--quiet", `--platform=${platform}`, entry);
    const modules = [...script.matchAll(MODULE_LINE)].map(([, path]) => join(project_dir, path!));
    const { npmPackages } = JSON.parse(await run("info", "--json", entry)) as ModuleGraph;
    for (const one of Object.values(npmPackages)) {
      const is_bundled = modules.some((path) => path.startsWith(`${one.localPath}/`));
      if (is_bundled) found.set(`${one.name} ${one.version}`, one);
    }
  }
  return [...found].sort(([a], [b]) => a < b ? -1 : 1).map(([, one]) => one);
}

export async function renderNotices(
  packages: readonly InstalledPackage[],
  others: readonly (readonly [name: string, license: string])[],
): Promise<string> {
  const licenses = await Promise.all(
    packages.map(async ({ name, version, localPath }) =>
      [`${name} ${version}`, await readLicense(localPath)] as const
    ),
  );
  return [...licenses, ...others].map(([name, text]) => `${name}\n\n${text.trim()}\n`)
    .join(`\n${"-".repeat(80)}\n\n`);
}

async function readLicense(folder: string): Promise<string> {
  for await (const { name, isFile } of Deno.readDir(folder)) {
    if (isFile && LICENSE_FILE.test(name)) return await Deno.readTextFile(join(folder, name));
  }
  const { license } = JSON.parse(await Deno.readTextFile(join(folder, "package.json")));
  return `License: ${license}`;
}
