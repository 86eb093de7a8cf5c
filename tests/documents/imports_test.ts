/**
 * Modules do not load each other in a circle, and export only names that another module imports.
 */

import assert from "node:assert/strict";
import { posix } from "node:path";
import { projectFiles, readProjectFile } from "../support/documents/project_files.ts";

/** The folders whose exports are checked. */
const CHECKED = /^(?:apps|shared|tests|tools)\//;
const EXPORT =
  /^export (?:abstract )?(?:async )?(?:const|let|function\*?|class|interface|type) (\w+)/gm;
/** A static import or re-export, with its names in braces if it has some, and perhaps `type`. */
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

/** A name that a module imports of another one; "*": all of it. A type is no import at run time. */
type Import = [target: string, name: string, is_type: boolean];

const modules = new Map<string, { text: string; imports: Import[] }>();
for (const path of await projectFiles([".ts", ".tsx"])) {
  const text = await readProjectFile(path);
  const target = (specifier: string) => posix.join(posix.dirname(path), specifier);
  const named = [...text.matchAll(STATIC)].flatMap(([, clause, specifier]) => {
    const [, braces] = /\{([^}]*)\}/.exec(clause!) ?? [];
    const names = braces?.split(",").map((name) => name.trim().replace(/^type /, "").split(" ")[0]!)
      .filter((name) => name !== "");
    const is_type = /^\s*type\b/.test(clause!);
    return (names ?? ["*"]).map((name): Import => [target(specifier!), name, is_type]);
  });
  const whole = [...text.matchAll(WHOLE)].map(([, specifier]): Import => [
    target(specifier!),
    "*",
    false,
  ]);
  modules.set(path, { text, imports: [...named, ...whole] });
}

Deno.test("no module loads itself through others", () => {
  const done = new Set<string>();
  const visit = (path: string, way: readonly string[]) => {
    assert.ok(!way.includes(path), [...way, path].join(" → "));
    if (done.has(path)) return;
    for (const [target, , is_type] of modules.get(path)?.imports ?? []) {
      if (!is_type) visit(target, [...way, path]);
    }
    done.add(path);
  };
  for (const path of modules.keys()) visit(path, []);
});

Deno.test("every export is imported by another module", () => {
  const imported = new Set(
    [...modules.values()].flatMap(({ imports }) =>
      imports.map(([target, name]) => `${target} ${name}`)
    ),
  );
  const unused = [...modules].flatMap(([path, { text }]) =>
    !CHECKED.test(path) || imported.has(`${path} *`)
      ? []
      : [...text.matchAll(EXPORT)].map(([, name]) => `${path} ${name}`)
        .filter((name) => !imported.has(name) && !WRITTEN.has(name))
  );
  assert.deepEqual(unused, []);
});
