/** The licenses of the npm packages that the bundles contain. Their authors ask to be named. */

import { join } from "node:path";

/** The parts of the output of `deno info --json` that are read. */
interface ModuleGraph {
  modules: { npmPackage?: string }[];
  npmPackages: Record<string, InstalledPackage>;
}

/** An npm package in the cache of Deno. */
interface InstalledPackage {
  name: string;
  version: string;
  /** Keys of `npmPackages`. */
  dependencies: string[];
  localPath: string;
}

const LICENSE_FILE = /^(licen[cs]e|copying|unlicense)(\.\w+)?$/i;

/** Returns the npm packages that these modules of the project import, sorted by name. */
export async function bundledPackages(
  project_dir: string,
  entries: readonly string[],
): Promise<InstalledPackage[]> {
  const found = new Map<string, InstalledPackage>();
  for (const entry of entries) {
    const { modules, npmPackages } = await readGraph(project_dir, entry);
    const ids = new Set(modules.flatMap(({ npmPackage }) => npmPackage ?? []));
    // Dependencies are added while the set is read, and are read after those before them.
    for (const id of ids) {
      const one = npmPackages[id]!;
      found.set(`${one.name} ${one.version}`, one);
      for (const dependency of one.dependencies) ids.add(dependency);
    }
  }
  return [...found].sort(([a], [b]) => a < b ? -1 : 1).map(([, one]) => one);
}

/** Returns the license texts of packages, and of other works by their names. */
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

async function readGraph(cwd: string, entry: string): Promise<ModuleGraph> {
  const command = new Deno.Command(Deno.execPath(), { args: ["info", "--json", entry], cwd });
  const { success, stdout, stderr } = await command.output();
  if (!success) throw new Error(new TextDecoder().decode(stderr));
  return JSON.parse(new TextDecoder().decode(stdout));
}
