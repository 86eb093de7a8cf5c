/** Bundles the script of a page with `deno bundle` (ADR 0012). */

import { fileURLToPath } from "node:url";

const PROJECT_DIR = fileURLToPath(new URL("../../", import.meta.url));

/**
 * Returns the script of a page with everything that it imports.
 * @param entry path of the module in the project
 * @throws {Error} with the output of `deno bundle` if it fails
 */
export async function bundleScript(entry: string): Promise<string> {
  const command = new Deno.Command(Deno.execPath(), {
    args: ["bundle", "--quiet", "--platform=browser", "--minify", entry],
    cwd: PROJECT_DIR,
    env: { NO_COLOR: "1", DENO_NO_UPDATE_CHECK: "1" },
    stdin: "null",
  });
  const { success, stdout, stderr } = await command.output();
  if (success) return new TextDecoder().decode(stdout);
  throw new Error(`${entry} cannot be bundled: ${new TextDecoder().decode(stderr).trim()}`);
}
