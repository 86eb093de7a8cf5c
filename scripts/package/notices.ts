/** The licenses of the npm packages that the bundles contain. Their authors ask to be named. */

import { join } from "node:path";

/** The parts of the output of `deno info --json` that are read. */
interface ModuleGraph {
  modules: { npmPackage?: string }[];
  npmPackages: Record<string, InstalledPackage>;
}

interface InstalledPackage {
  name: string;
  version: string;
  /** Keys of `npmPackages`. */
  dependencies: string[];
  localPath: string;
}

const LICENSE_FILE = /^(licen[cs]e|copying|unlicense)(\.\w+)?$/i;

/** Returns the license texts of the packages that these modules of the project import. */
export async function renderNotices(project_dir: string, entries: string[]): Promise<string> {
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
  const notices = [...found].sort(([a], [b]) => a < b ? -1 : 1).map(async ([title, one]) =>
    `${title}\n\n${(await readLicense(one.localPath)).trim()}\n`
  );
  return (await Promise.all(notices)).join(`\n${"-".repeat(80)}\n\n`);
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
