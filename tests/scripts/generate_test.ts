/** The files that `deno task generate` writes agree with the code. */

import assert from "node:assert/strict";
import { GENERATED_FILES } from "../../tools/generate.ts";
import { replaceBlock } from "../../tools/generate/generated_block.ts";
import { isServedModule } from "../../tools/generate/openapi/openapi.ts";

const ROOT = new URL("../../", import.meta.url);

for (const { path, render, isRight } of GENERATED_FILES) {
  Deno.test(`${path} is written from the code`, async () => {
    const committed = await Deno.readTextFile(new URL(path, ROOT));
    if (isRight) assert.ok(await isRight(committed), 'run "deno task generate"');
    else assert.equal(committed, await render(committed), 'run "deno task generate"');
  });
}

Deno.test("isServedModule() refuses another text, another document and no module", async () => {
  const path = new URL("shared/http/openapi_document.ts", ROOT);
  const module = await Deno.readTextFile(path);
  assert.equal(await isServedModule(module.replace("Loaded", "loaded")), false);
  assert.equal(await isServedModule(module.replace(/"H4sI[^"]*"/, '"H4sI"')), false);
  assert.equal(await isServedModule(""), false);
});

Deno.test("replaceBlock() replaces the text between the markers and nothing else", () => {
  const document = "before\n\n<!-- generated: a -->\n\nold\n\n<!-- end: a -->\n\nafter\n";
  const expected = document.replace("old", "new");
  assert.equal(replaceBlock(document, "a", "new"), expected);
  assert.equal(replaceBlock(expected, "a", "new"), expected);
  assert.throws(() => replaceBlock(document, "b", "new"), /markers .* are missing/);
});
