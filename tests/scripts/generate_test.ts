/** The files that `deno task generate` writes agree with the code. */

import assert from "node:assert/strict";
import { GENERATED_FILES } from "../../tools/generate.ts";

const ROOT = new URL("../../", import.meta.url);

for (const { path, render, isRight } of GENERATED_FILES) {
  Deno.test(`${path} is written from the code`, async () => {
    const committed = await Deno.readTextFile(new URL(path, ROOT));
    if (isRight) assert.ok(await isRight(committed), 'run "deno task generate"');
    else assert.equal(committed, await render(committed), 'run "deno task generate"');
  });
}
