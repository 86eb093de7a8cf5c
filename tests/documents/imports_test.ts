/**
 * Modules do not import each other in a circle, and export only names that another module imports.
 */

import assert from "node:assert/strict";
import { posix } from "node:path";
import { projectFiles, readProjectFile } from "../support/documents/project_files.ts";

/** The folders whose exports are checked. */
const CHECKED = /^(?:apps|shared|tests|tools(?!\/mutants))\//;
const EXPORT =
  /^export (?:abstract )?(?:async )?(?:const|let|function\*?|class|interface|type) (\w+)/gm;
/** A static import or re-export, with its names in braces if it has some. */
const STATIC = /\b(?:import|export)\b([^;"'`]*?)\bfrom\s*"(\.[^"]+)"/g;
/** An import without names, or an import at run time. */
const WHOLE = /\bimport\s*\(?\s*"(\.[^"]+)"/g;
/** Exports of, or for, modules that are generated: the name occurs in a text. */
const WRITTEN = new Set([
  "tools/generate/client_types.ts ERROR_CODES",
  "tools/generate/client_types.ts ListParams",
  "tools/generate/openapi/openapi.ts OPENAPI_GZIP",
  "tests/support/testing/share_worker.ts loadFiles",
]);

/** The names that a module imports of each other one; "*": all. */
const modules = new Map<string, { text: string; imports: [target: string, name: string][] }>();
for (const path of await projectFiles([".ts", ".tsx"])) {
  const text = await readProjectFile(path);
  const target = (specifier: string) => posix.join(posix.dirname(path), specifier);
  const named = [...text.matchAll(STATIC)].flatMap(([, clause, specifier]) => {
    const [, braces] = /\{([^}]*)\}/.exec(clause!) ?? [];
    const names = braces?.split(",").map((name) => name.trim().replace(/^type /, "").split(" ")[0]!)
      .filter((name) => name !== "");
    return (names ?? ["*"]).map((name): [string, string] => [target(specifier!), name]);
  });
  const whole = [...text.matchAll(WHOLE)].map(([, specifier]): [string, string] => [
    target(specifier!),
    "*",
  ]);
  modules.set(path, { text, imports: [...named, ...whole] });
}

Deno.test("no module imports itself through others", () => {
  const done = new Set<string>();
  const visit = (path: string, way: readonly string[]) => {
    assert.ok(!way.includes(path), [...way, path].join(" → "));
    if (done.has(path)) return;
    for (const [target] of modules.get(path)?.imports ?? []) visit(target, [...way, path]);
    done.add(path);
  };
  for (const path of modules.keys()) visit(path, []);
});

Deno.test("every export is imported by another module", () => {
  const imported = new Set(
    [...modules.values()].flatMap(({ imports }) => imports.map((one) => one.join(" "))),
  );
  const unused = [...modules].flatMap(([path, { text }]) =>
    !CHECKED.test(path) || imported.has(`${path} *`)
      ? []
      : [...text.matchAll(EXPORT)].map(([, name]) => `${path} ${name}`)
        .filter((name) => !imported.has(name) && !WRITTEN.has(name))
  );
  assert.deepEqual(unused, []);
});
