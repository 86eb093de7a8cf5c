/**
 * A deployment by docs/operations/deploy.md: a database that is set up like Supabase's, to which
 * the real CLI pushes, and the uploaded functions as processes of Deno 2.1.4.
 */

import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import { block } from "../documents/operations_document.ts";
import { startFunctions } from "./function_process.ts";
import { openManagementApi } from "./management_api.ts";
import { copyProject, PROJECT_REF } from "./supabase_cli.ts";
import { startSupabaseServer } from "./supabase_server.ts";

/**
 * Deploys the service. `open` closes everything.
 * @param planted files of the checkout beside those of the repository
 */
export async function deployService(open: AsyncDisposableStack, planted: readonly string[] = []) {
  const project = open.use(await copyProject());
  const api = open.use(await openManagementApi(project.path));
  const server = open.use(await startSupabaseServer(17));
  const folder = await Deno.makeTempDir({ prefix: "payments-uploaded-" });
  open.defer(() => Deno.remove(folder, { recursive: true }));
  for (const path of planted) {
    await Deno.writeTextFile(join(project.path, path), "SECRET=planted\n");
  }
  /** Runs the commands of a page without a terminal. Returns what they print. */
  const run = async (script: string) => {
    const { code, stdout, stderr } = await project.runScript(script, api.profile, server.url);
    assert.equal(code, 0, stderr + stdout);
    assert.doesNotMatch(stderr + stdout, /WARN/);
    return stdout;
  };
  const script = await block("Deploying to a Supabase project", "console");
  const printed = await run(script.replaceAll("<ref>", PROJECT_REF));
  return {
    ...{ project, api, server, printed, run },
    /** Starts a function from its uploaded files alone, with the variables that Supabase sets. */
    async start(name: string, environment: Record<string, string> = {}) {
      const deployed = api.functions.get(name);
      assert.ok(deployed, `${name} is not deployed`);
      for (const [path, text] of deployed.files) {
        const file = join(folder, name, path);
        await Deno.mkdir(dirname(file), { recursive: true });
        await Deno.writeTextFile(file, text);
      }
      const variables = {
        SUPABASE_DB_URL: server.url,
        SUPABASE_URL: `https://${PROJECT_REF}.supabase.co`,
        ...Object.fromEntries(api.secrets),
        ...environment,
      };
      return open.use(await startFunctions([name], variables, () => {}, join(folder, name)));
    },
  };
}
