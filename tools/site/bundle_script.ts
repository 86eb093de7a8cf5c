/** Bundles the script of a page with `deno bundle` (ADR 0012). */

import { fileURLToPath } from "node:url";
import { runProgram } from "../run_program.ts";

const PROJECT_DIR = fileURLToPath(new URL("../../", import.meta.url));

/**
 * Returns the script of a page with everything that it imports.
 * @param entry path of the module in the project
 * @throws {Error} with the output of `deno bundle` if it fails
 */
export function bundleScript(entry: string): Promise<string> {
  const command = [Deno.execPath(), "bundle", "--quiet", "--platform=browser", "--minify", entry];
  return runProgram(command, { cwd: PROJECT_DIR });
}
