/**
 * The npm package in an empty project: the start, sandboxes for tests, and the recipes of
 * docs/testing.md. Nothing is fetched after the installation.
 */

import { missingPrograms } from "../support/documents/readme_shell.ts";
import { withInstalledPackage } from "../support/package/installed_package.ts";
import { RECIPE_CASES } from "../support/package/recipe_cases.ts";
import { READY_CASE, SANDBOX_CASES } from "../support/package/sandbox_cases.ts";
import { START_CASES } from "../support/package/start_cases.ts";

const CASES = [...START_CASES, ...SANDBOX_CASES, READY_CASE, ...RECIPE_CASES];

const missing = await missingPrograms(["node", "npm"]);
if (missing.length > 0) {
  console.warn(`The npm package is not tested unless CI is set: no ${missing.join(", ")}`);
}

Deno.test({
  name: "the npm package can be installed and used",
  ignore: missing.length > 0 && Deno.env.get("CI") === undefined,
  fn: (t) =>
    withInstalledPackage(async (installed) => {
      for (const { name, run } of CASES) {
        await t.step(name, () => run(installed));
      }
    }),
});
