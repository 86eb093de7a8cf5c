/**
 * The three import maps agree. A function is deployed with its own `deno.json` only, so a different
 * version there would be served without being tested.
 */

import assert from "node:assert/strict";
import { projectFiles, readProjectFile } from "../support/documents/project_files.ts";

const FUNCTIONS = ["api-v1-payments", "api-v1-sandbox"] as const;
/** `npm:name@1.2.3`, with slashes around it in a map of the package's subpaths. */
const EXACT_PACKAGE = /^npm:\/?((?:@[\w.-]+\/)?[\w.-]+)@\d+\.\d+\.\d+(?:-[\w.]+)?(\/?)$/;
/** The specifier of a static import, an export from, or an import of a constant text. */
const SPECIFIER = /(?:\bfrom\s*|\bimport\s*\(?\s*)"([^"]+)"/g;

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
