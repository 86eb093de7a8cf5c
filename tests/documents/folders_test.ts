/**
 * Imports between the folders of shared/ follow the arrows of the diagram in docs/architecture.md.
 */

import assert from "node:assert/strict";
import { posix } from "node:path";
import { findCycles, readModules } from "../support/documents/imports.ts";
import { projectFiles, readProjectFile } from "../support/documents/project_files.ts";

const page = await readProjectFile("docs/architecture.md");
const [, diagram = ""] = /```mermaid\nflowchart LR\n(.*?)```/s.exec(page) ?? [];
/** The folders, by their names in the diagram. */
const named = new Map(
  [...diagram.matchAll(/(\w+)\["((?:shared|supabase)\/[\w/]+)"\]/g)].map((
    [, name, folder],
  ) => [name!, folder!]),
);
const folders = [...named.values()];
/** The arrows between folders. A line of the diagram has one or several: `a --> b --> c`. */
const arrows = diagram.split("\n").flatMap((line) => {
  const way = line.split(" --> ").map((node) => named.get(/\w+/.exec(node)?.[0] ?? ""));
  return way.slice(1).map((to, i) => [way[i], to] as const);
});

/** Reports whether a path is a folder, or stands in it. */
const isIn = (path: string, folder: string) => path === folder || path.startsWith(`${folder}/`);

/** Returns the innermost folder of the diagram that has a file: its first three levels, or two. */
function folderOf(path: string): string {
  const steps = path.split("/");
  const inner = steps.slice(0, 3).join("/");
  return folders.includes(inner) ? inner : steps.slice(0, 2).join("/");
}

/** A folder, and every folder that the arrows lead to from it, or from the one around it. */
function reachedFrom(folder: string): Set<string> {
  const reached = new Set([folder]);
  for (const at of reached) {
    for (const [from, to] of arrows) {
      if (from !== undefined && to !== undefined && isIn(at, from)) reached.add(to);
    }
  }
  return reached;
}

Deno.test("every module of tests/ is a test, or stands in tests/chaos or a folder of tests/support", async () => {
  const modules = (await projectFiles([".ts", ".tsx"])).filter((path) => path.startsWith("tests/"));
  const elsewhere = modules.filter((path) =>
    !/^tests\/[a-z_]+\/[^/]+_test\.tsx?$|^tests\/(?:support\/[a-z_]+|chaos)\/[^/]+$/.test(path)
  );
  assert.deepEqual(elsewhere, []);
});

Deno.test("docs/architecture.md shows every folder of shared/ and shared/domain/", async () => {
  const paths = (await projectFiles([".ts"])).filter((path) => path.startsWith("shared/"));
  const outer = paths.map((path) => path.split("/").slice(0, 2).join("/"));
  const inner = paths.map((path) => posix.dirname(path)).filter((folder) =>
    isIn(folder, "shared/domain")
  );
  const shown = folders.filter((folder) => isIn(folder, "shared"));
  assert.deepEqual(shown.sort(), [...new Set([...outer, ...inner])].sort());
});

Deno.test("imports follow the arrows of the diagram or stay in their folder", async () => {
  const against: string[] = [];
  for (const [path, { imports }] of await readModules()) {
    const from = folderOf(path);
    if (!folders.includes(from)) continue;
    for (const { target } of imports) {
      const to = folderOf(target);
      if (folders.includes(to) && ![...reachedFrom(from)].some((folder) => isIn(to, folder))) {
        against.push(`${path} imports ${target}`);
      }
    }
  }
  assert.deepEqual(against, []);
});

for (const parent of ["shared/domain", "apps", "tools", "tests/support"]) {
  Deno.test(`the folders of ${parent} do not import each other in a circle`, async () => {
    const imports = new Map<string, string[]>();
    for (const [path, module] of await readModules()) {
      const folder = posix.dirname(path);
      if (!folder.startsWith(`${parent}/`)) continue;
      const others = module.imports.map(({ target }) => posix.dirname(target))
        .filter((other) => other.startsWith(`${parent}/`) && other !== folder);
      imports.set(folder, [...imports.get(folder) ?? [], ...others]);
    }
    assert.deepEqual(findCycles(imports), []);
  });
}
