/**
 * Finds the pure test files: they import nothing that starts a program or a database, so they run
 * without a server, on any machine, in seconds.
 */

import { posix } from "node:path";

/** The service itself starts nothing when it is imported. */
const SERVICE = /^(?:shared|packages\/client)\//;
/** Another module with one of these texts needs more than its own process. */
const NEEDS_MORE =
  /\bDeno\.(?:Command|serve|listen)\b|\bTEST_SERVER\b|"playwright-core"|"postgres"/;
const IMPORT = /\b(?:from |import |import\()"(\.[^"\n]+)"/g;
/** Types alone import nothing at run time. */
const TYPES = /\b(?:import|export) type [^;]*;/g;

/**
 * Returns the pure files of these.
 * @param files paths relative to the project
 * @param read reads a file of the project; null if there is none, as for an import in a text
 */
export async function pureTests(
  files: readonly string[],
  read: (path: string) => Promise<string | null>,
): Promise<string[]> {
  const known = new Map<string, { needs_more: boolean; imports: string[] }>();
  const look = async (path: string) => {
    const text = (await read(path) ?? "").replaceAll(TYPES, "");
    const imports = [...text.matchAll(IMPORT)]
      .map(([, specifier]) => posix.join(posix.dirname(path), specifier!));
    return { needs_more: !SERVICE.test(path) && NEEDS_MORE.test(text), imports };
  };
  const isPure = async (file: string) => {
    const seen = new Set([file]);
    for (const path of seen) {
      const module = known.get(path) ?? await look(path);
      known.set(path, module);
      if (module.needs_more) return false;
      for (const target of module.imports) seen.add(target);
    }
    return true;
  };
  const pure: string[] = [];
  for (const file of files) if (await isPure(file)) pure.push(file);
  return pure;
}
