/** The command `open --print`: the link to the console, with a test key and never with a live one. */

import assert from "node:assert/strict";
import { OPEN } from "../../packages/sandbox/commands/open.ts";
import { generateApiKey } from "../../shared/core/api_key.ts";

const BASE_URL = "http://127.0.0.1:54321/functions/v1";

/** Returns what the command prints. */
async function printed(key: string, values: Record<string, boolean> = {}): Promise<string> {
  let text = "";
  const code = await OPEN.run({ print: true, "base-url": BASE_URL, key, ...values }, [], {
    env: () => undefined,
    cwd: "/",
    print: (line) => text += line,
    printMessage: () => {},
  });
  assert.equal(code, 0);
  return text;
}

Deno.test("open --print prints a link that carries the test key", async () => {
  const key = generateApiKey("test");
  const url = `http://127.0.0.1:54321/console/#key=${key}`;
  assert.equal(await printed(key), `${url}\n`);
  assert.deepEqual(JSON.parse(await printed(key, { json: true })), { url });
});

Deno.test("open --print puts no live key into the link", async () => {
  assert.equal(await printed(generateApiKey("live")), "http://127.0.0.1:54321/console/\n");
});
