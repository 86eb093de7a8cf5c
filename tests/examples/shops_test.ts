/**
 * The example shops, run by the commands of their READMEs. A browser buys, goes through the page of
 * 3-D Secure and comes back.
 */

import assert from "node:assert/strict";
import { VERSION } from "../../packages/client/user_agent.ts";
import { codeBlocks } from "../support/documents/readme_document.ts";
import { missingPrograms } from "../support/documents/readme_shell.ts";
import { readProjectFile } from "../support/documents/project_files.ts";
import { browserCase } from "../support/console/console_case.ts";
import { runShopCases } from "../support/examples/shop_cases.ts";

/** The examples, with the programs that they need. */
const SHOPS = {
  express_shop: ["bash", "curl", "node", "npm"],
  fastapi_shop: ["bash", "curl", "python3"],
};

for (const [name, programs] of Object.entries(SHOPS)) {
  const missing = await missingPrograms(programs);
  if (missing.length > 0) {
    console.warn(`examples/${name} is not run unless CI is set: no ${missing.join(", ")}`);
  }
  browserCase({
    name: `examples/${name} sells, with 3-D Secure in the browser`,
    ignore: missing.length > 0 && Deno.env.get("CI") === undefined,
  }, (step, run) => runShopCases(name, step, run));
}

Deno.test("examples/fastapi_shop verifies webhooks as docs/webhook_verification.md does", async () => {
  const page = await readProjectFile("docs/webhook_verification.md");
  const [documented] = codeBlocks(page).filter(({ language }) => language === "python");
  const example = await readProjectFile("examples/fastapi_shop/webhook_signature.py");
  assert.equal(example.replace(/^"""[^"]*"""\n\n/, ""), documented!.text);
});

Deno.test("examples/express_shop has the versions that tests/shop runs", async () => {
  const { dependencies } = JSON.parse(await readProjectFile("examples/express_shop/package.json"));
  const { imports } = JSON.parse(await readProjectFile("deno.json"));
  assert.deepEqual(dependencies, {
    "@payments-api/client": `file:payments-api-client-${VERSION}.tgz`,
    express: imports.express.replace("npm:express@", ""),
  });
});
