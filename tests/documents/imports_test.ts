/**
 * Modules do not load each other in a circle, and export only names that another module imports.
 * The three import maps agree: a function is deployed with its own `deno.json` only, so a different
 * version there would be served without being tested.
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

/** The OpenAPI document and the client have every schema that this folder exports. */
const SCHEMAS = /^shared\/schema\//;
const SCHEMA = /^export const [A-Z]\w*[a-z]/;

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
      : [...text.matchAll(EXPORT)].filter(([all]) => !(SCHEMAS.test(path) && SCHEMA.test(all)))
        .map(([, name]) => `${path} ${name}`)
        .filter((name) => !imported.has(name) && !WRITTEN.has(name))
  );
  assert.deepEqual(unused, []);
});

const FUNCTIONS = ["api-v1-payments", "api-v1-sandbox"] as const;
/** `npm:name@1.2.3`, with slashes around it in a map of the package's subpaths. */
const EXACT_PACKAGE = /^npm:\/?((?:@[\w.-]+\/)?[\w.-]+)@\d+\.\d+\.\d+(?:-[\w.]+)?(\/?)$/;
/** The specifier of a static import, an export from, or an import of a constant text. */
const SPECIFIER = /(?:\bfrom\s*|\bimport\s*\(?\s*)"([^"\n]+)"/g;

/** The client, which examples import by the name of its package. */
const CLIENT = ["@payments-api/client", "./packages/client/mod.ts"] as const;

type ImportMap = Record<string, string>;

Deno.test("deno.json of both functions are equal", async () => {
  const [payments, sandbox] = await Promise.all(FUNCTIONS.map(functionMap));
  assert.deepEqual(payments, sandbox);
});

Deno.test("deno.json of a function has only entries of the root's", async () => {
  const root = await readMap("deno.json");
  for (const name of FUNCTIONS) {
    const map = await functionMap(name);
    assert.deepEqual(map, Object.fromEntries(Object.keys(map).map((key) => [key, root[key]])));
  }
});

Deno.test("deno.json of a function has exactly the packages that shared/ imports", async () => {
  const used = new Set<string>();
  const keys = Object.keys(await functionMap(FUNCTIONS[0]));
  for (const path of await projectFiles([".ts"], ["shared/"])) {
    for (const [, specifier] of (await readProjectFile(path)).matchAll(SPECIFIER)) {
      if (/^(\.\.?\/|node:)/.test(specifier!)) continue;
      const key = keys.find((key) => key.endsWith("/") && specifier!.startsWith(key));
      assert.ok(key ?? keys.includes(specifier!), `${path} imports "${specifier}": not in the map`);
      used.add(key ?? specifier!);
    }
  }
  assert.deepEqual([...used].sort(), keys.sort());
});

Deno.test("deno.json has exact versions, one per package", async () => {
  const versions = new Map<string, string>();
  const { [CLIENT[0]]: client, ...packages } = await readMap("deno.json");
  assert.equal(client, CLIENT[1]);
  for (const [key, target] of Object.entries(packages)) {
    const [, name, slash] = EXACT_PACKAGE.exec(target) ?? [];
    assert.ok(name, `"${key}": "${target}" is not an exact npm version`);
    assert.equal(key, name + slash, `"${key}" is named after another package: "${target}"`);
    const version = target.replace(/^npm:\/?|\/$/g, "");
    assert.equal(versions.get(name) ?? version, version);
    versions.set(name, version);
  }
});

Deno.test("deno.json of a function has no lock file or other configuration beside it", async () => {
  for (const name of FUNCTIONS) {
    const folder = `supabase/functions/${name}/`;
    const files = await projectFiles([""], [folder]);
    assert.deepEqual(files, ["deno.json", "index.ts"].map((file) => folder + file));
  }
});

async function readMap(path: string): Promise<ImportMap> {
  return JSON.parse(await readProjectFile(path)).imports;
}

function functionMap(name: string): Promise<ImportMap> {
  return readMap(`supabase/functions/${name}/deno.json`);
}
