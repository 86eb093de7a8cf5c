/**
 * The npm package in an empty project: the start, sandboxes for tests, and the recipes of
 * docs/testing.md. Nothing is fetched after the installation.
 */

import { lacksPrograms } from "../support/common/programs.ts";
import { withInstalledPackage } from "../support/package/installed_package.ts";
import { RECIPE_CASES } from "../support/package/recipe_cases.ts";
import { READY_CASE, SANDBOX_CASES } from "../support/package/sandbox_cases.ts";
import { START_CASES } from "../support/package/start_cases.ts";

const CASES = [...START_CASES, ...SANDBOX_CASES, READY_CASE, ...RECIPE_CASES];

Deno.test({
  name: "the npm package can be installed and used",
  ignore: await lacksPrograms("the npm package", ["node", "npm"]),
  fn: (t) =>
    withInstalledPackage(async (installed) => {
      for (const { name, run } of CASES) {
        await t.step(name, () => run(installed));
      }
    }),
});
