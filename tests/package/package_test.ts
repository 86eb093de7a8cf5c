/**
 * The npm package in an empty project: the start, sandboxes for tests, and the recipes of
 * docs/testing.md. Nothing is fetched after the installation.
 */

import { lacksPrograms } from "../support/common/programs.ts";
import { withInstalledPackage } from "../support/package/installed_package.ts";
import { recipeCases } from "../support/package/recipe_cases.ts";
import { sandboxCases } from "../support/package/sandbox_cases.ts";
import { startCases } from "../support/package/start_cases.ts";

Deno.test({
  name: "the npm package can be installed and used",
  ignore: await lacksPrograms("the npm package", ["node", "npm"]),
  fn: (t) =>
    withInstalledPackage(async (installed) => {
      for (const run of [startCases, sandboxCases, recipeCases]) await run(t, installed);
    }),
});
