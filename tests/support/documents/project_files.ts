/** Lists and reads the project's files for the tests of documents. */

/** The folder of the project. */
const ROOT = new URL("../../../", import.meta.url);

/** Folders that are left out: they contain generated files, or files of other projects. */
const LEFT_OUT = new Set([
  ".git",
  ".local",
  ".venv",
  "artifacts",
  "checkout_site",
  "console_site",
  "dist",
  "documentation",
  "node_modules",
]);

/** The text of a file, by its path in the project. */
export function readProjectFile(path: string): Promise<string> {
  return Deno.readTextFile(new URL(path, ROOT));
}

/** Paths of all files of folders, by default of all, whose names end in one of these, sorted. */
export async function projectFiles(
  endings: readonly string[],
  folders: readonly string[] = [""],
): Promise<string[]> {
  const paths: string[] = [];
  for (const folder of folders) {
    for await (const path of walk(folder)) {
      if (endings.some((ending) => path.endsWith(ending))) paths.push(path);
    }
  }
  return paths.sort();
}

/** Whether a path of the project exists; `*` stands for any part of a name. */
export async function exists(path: string): Promise<boolean> {
  if (!path.includes("*")) {
    return await Deno.stat(new URL(path, ROOT)).then(() => true, () => false);
  }
  const form = new RegExp(`^${path.replace(/[.+]/g, "\\$&").replaceAll("*", "[^/]*")}$`);
  for await (const found of walk(path.slice(0, path.lastIndexOf("/", path.indexOf("*")) + 1))) {
    if (form.test(found)) return true;
  }
  return false;
}

async function* walk(folder: string): AsyncGenerator<string> {
  for await (const { name, isDirectory } of Deno.readDir(new URL(folder || ".", ROOT))) {
    if (LEFT_OUT.has(name)) continue;
    if (isDirectory) yield* walk(`${folder}${name}/`);
    else yield folder + name;
  }
}
