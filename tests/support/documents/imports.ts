/** The imports between the project's own modules, read from their text. */

import { posix } from "node:path";
import { projectFiles, readProjectFile } from "./project_files.ts";

/** An import or a re-export of a module of the project. */
interface ModuleImport {
  /** Path in the project. */
  target: string;
  /** The imported names; null when all are: `import * as`, `export *`, `import("…")`. */
  names: string[] | null;
}

/** A static import or re-export, with its names in braces if it has some. */
const STATIC = /\b(?:import|export)\b([^;"'`]*?)\bfrom\s*"(\.[^"]+)"/g;
/** An import without names, or an import at run time. */
const WHOLE = /\bimport\s*\(?\s*"(\.[^"]+)"/g;

/** The imports that a module's text has. */
export function importsOf(path: string, text: string): ModuleImport[] {
  const target = (specifier: string) => posix.join(posix.dirname(path), specifier);
  const imports: ModuleImport[] = [];
  for (const [, clause, specifier] of text.matchAll(STATIC)) {
    const [, braces] = /\{([^}]*)\}/.exec(clause!) ?? [];
    const names = braces?.split(",").map((name) => name.trim().replace(/^type /, "").split(" ")[0]!)
      .filter((name) => name !== "");
    imports.push({ target: target(specifier!), names: names ?? null });
  }
  for (const [, specifier] of text.matchAll(WHOLE)) {
    imports.push({ target: target(specifier!), names: null });
  }
  return imports;
}

/** All modules of the project in TypeScript, and their imports. */
export async function readModules(): Promise<
  Map<string, { text: string; imports: ModuleImport[] }>
> {
  const modules = new Map<string, { text: string; imports: ModuleImport[] }>();
  for (const path of await projectFiles([".ts", ".tsx"])) {
    const text = await readProjectFile(path);
    modules.set(path, { text, imports: importsOf(path, text) });
  }
  return modules;
}

/** Returns a cycle of each group of modules that import each other, as a list of paths. */
export function findCycles(imports: ReadonlyMap<string, readonly string[]>): string[][] {
  const cycles: string[][] = [];
  const state = new Map<string, "under way" | "done">();
  const way: string[] = [];
  const visit = (path: string) => {
    state.set(path, "under way");
    way.push(path);
    for (const target of imports.get(path) ?? []) {
      if (state.get(target) === "under way") {
        cycles.push([...way.slice(way.indexOf(target)), target]);
      } else if (!state.has(target)) visit(target);
    }
    way.pop();
    state.set(path, "done");
  };
  for (const path of imports.keys()) if (!state.has(path)) visit(path);
  return cycles;
}
