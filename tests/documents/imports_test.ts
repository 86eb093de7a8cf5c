/**
 * Modules do not import each other in a circle, and export only names that another module imports.
 */

import assert from "node:assert/strict";
import { findCycles, importsOf, readModules } from "../support/documents/imports.ts";

/** The folders whose exports are checked. */
const CHECKED = /^(?:bench|console|scripts|shared|tests|chaos)\//;
const EXPORT =
  /^export (?:abstract )?(?:async )?(?:const|let|function\*?|class|interface|type) (\w+)/gm;

/** Exports of, or for, modules that are generated: the name occurs in a text. */
const WRITTEN = new Set([
  "tools/generate/client_types.ts ERROR_CODES",
  "tools/generate/client_types.ts ListParams",
  "tools/generate/openapi/openapi.ts OPENAPI_GZIP",
  "tests/support/testing/share_worker.ts loadFiles",
]);

const modules = await readModules();

Deno.test("importsOf() reads names, whole modules and imports at run time", () => {
  const text = `import { a, type B as C } from "./one.ts";
    import type { D } from "../two.ts";
    import * as three from "./three.ts";
    import node from "node:net";
    export { e } from "./one.ts";
    await import("./four.ts");`;
  assert.deepEqual(importsOf("x/y/z.ts", text), [
    { target: "x/y/one.ts", names: ["a", "B"] },
    { target: "x/two.ts", names: ["D"] },
    { target: "x/y/three.ts", names: null },
    { target: "x/y/one.ts", names: ["e"] },
    { target: "x/y/four.ts", names: null },
  ]);
});

Deno.test("findCycles() finds a cycle and nothing else", () => {
  assert.deepEqual(findCycles(new Map([["a", ["b", "c"]], ["b", ["c"]], ["c", []]])), []);
  const circle = new Map([["a", ["b"]], ["b", ["c"]], ["c", ["b"]]]);
  assert.deepEqual(findCycles(circle), [["b", "c", "b"]]);
});

Deno.test("no module imports itself through others", () => {
  const targets = [...modules].map(([path, { imports }]) =>
    [path, imports.map(({ target }) => target)] as const
  );
  assert.deepEqual(findCycles(new Map(targets)), []);
});

Deno.test("every export is imported by another module", () => {
  const imported = new Set<string>();
  const whole = new Set<string>();
  for (const { imports } of modules.values()) {
    for (const { target, names } of imports) {
      if (names === null) whole.add(target);
      for (const name of names ?? []) imported.add(`${target} ${name}`);
    }
  }
  const unused: string[] = [];
  for (const [path, { text }] of modules) {
    if (!CHECKED.test(path) || whole.has(path)) continue;
    for (const [, name] of text.matchAll(EXPORT)) {
      const exported = `${path} ${name}`;
      if (!imported.has(exported) && !WRITTEN.has(exported)) unused.push(exported);
    }
  }
  assert.deepEqual(unused, []);
});
