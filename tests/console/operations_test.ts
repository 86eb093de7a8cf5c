/** Every operation of the API that a test key can call can be done in the console. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { CLIENT_METHODS } from "../../scripts/documents/code_samples/typescript.ts";
import { PROJECT_DIR } from "../support/local/local_start.ts";

/** Operations without a place of their own, and the reason. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  getApiKey: "the list of keys shows every member",
  getSandbox: "the list of sandboxes shows every member",
  advanceSandboxPayment: "an alias of advancePayment",
  getPaymentsHealth: "needs no key",
  getSandboxHealth: "needs no key",
  getOpenapiDocument: "the link to the reference leads to it",
  wakeDispatcher: "for operators",
  purgeOutlivedData: "for operators",
};

/** The calls in the code of the console, as `payments.create`. */
async function callsInCode(): Promise<Set<string>> {
  const folder = join(PROJECT_DIR, "console");
  const calls = new Set<string>();
  for await (const { name } of Deno.readDir(folder)) {
    if (!/\.tsx?$/.test(name)) continue;
    const code = await Deno.readTextFile(join(folder, name));
    for (const [, resource, method] of code.matchAll(/\bcall\(\s*"(\w+)",\s*"(\w+)"/g)) {
      calls.add(`${resource}.${method}`);
    }
  }
  return calls;
}

Deno.test("the console can do every operation of docs/openapi.json", async () => {
  const document = JSON.parse(await Deno.readTextFile(join(PROJECT_DIR, "docs/openapi.json")));
  const operations = Object.values<Record<string, { operationId?: string }>>(document.paths)
    .flatMap((path) => Object.values(path).flatMap(({ operationId }) => operationId ?? []))
    // The paths with /v1 are aliases.
    .filter((id) => !id.endsWith("V1"));
  const calls = await callsInCode();
  const missing = operations.filter((id) =>
    !(id in ELSEWHERE) && !calls.has(CLIENT_METHODS[id] ?? "")
  );
  assert.deepEqual(missing, []);
  const gone = Object.keys(ELSEWHERE).filter((id) => !operations.includes(id));
  assert.deepEqual(gone, [], "operations that the document does not have");
});
