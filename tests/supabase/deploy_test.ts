/**
 * The documented deployment commands, with the real CLI and a stand-in of the management API. The
 * CLI uploads exactly the files that a function imports, and these alone run on Deno 2.1.4.
 */

import assert from "node:assert/strict";
import { join, relative } from "node:path";
import { migrate } from "../../apps/server/migrations/migrate.ts";
import { deployService } from "../support/supabase/deployed_service.ts";
import { PROJECT_REF } from "../support/supabase/supabase_cli.ts";
import { keyedCall } from "../support/service/keyed_call.ts";
import { makeSandboxKey } from "../support/database/api_keys.ts";
import { outputOf } from "../support/common/running_command.ts";

const NAMES = ["api-v1-payments", "api-v1-sandbox"] as const;
/** Files of a checkout that must never be uploaded. */
const PLANTED = [
  ".env",
  "supabase/.env",
  "supabase/functions/.env",
  "supabase/functions/api-v1-payments/.env",
  "supabase/functions/api-v1-payments/deno.lock",
  "supabase/functions/api-v1-payments/index_test.ts",
  "shared/.env",
  "shared/core/.env.local",
  "shared/core/ids_test.ts",
];
/** The first payment of each function. */
const FIRST_PAYMENT = {
  "api-v1-payments": {
    path: "/v1/payments",
    body: { amount: 1999, currency: "EUR", iban: "DE89370400440532013000" },
  },
  "api-v1-sandbox": {
    path: "/payments",
    body: { amount_minor: 1999, currency: "EUR", outcome: "success" },
  },
} as const;

Deno.test("docs/operations/deploy.md deploys to a Supabase project", async (t) => {
  await using open = new AsyncDisposableStack();
  const { project, api, server, printed, start } = await deployService(open, PLANTED);
  await t.step("the documented commands deploy everything, without a terminal", async () => {
    assert.deepEqual([...api.functions.keys()].sort(), [...NAMES]);
    assert.deepEqual(api.unknown, []);
    assert.deepEqual(await migrate(server.url), []);
    assert.deepEqual([...api.secrets.keys()].sort(), ["RELAY_TOKEN", "WEBHOOK_MASTER_SECRET"]);
    for (const [name, value] of api.secrets) {
      assert.match(value, /^[0-9a-f]{64}$/);
      assert.ok(printed.includes(`${name}=${value}`), "a secret must be shown once");
    }
  });
  const key = await makeSandboxKey(server.url);
  for (const name of NAMES) {
    const { metadata, files } = api.functions.get(name)!;
    await t.step(`${name} requires no JWT and starts at its index.ts`, () => {
      const { verify_jwt, entrypoint_path, import_map_path } = metadata;
      const folder = `supabase/functions/${name}`;
      assert.deepEqual({ verify_jwt, entrypoint_path, import_map_path }, {
        verify_jwt: false,
        entrypoint_path: `${folder}/index.ts`,
        import_map_path: `${folder}/deno.json`,
      });
    });
    await t.step(`${name} uploads exactly its imports, unchanged`, async () => {
      assert.deepEqual([...files.keys()].sort(), await importsOf(project.path, name));
      for (const [path, text] of files) {
        assert.equal(text, await Deno.readTextFile(join(project.path, path)), path);
      }
    });
    await t.step(`${name} alone in a folder creates a payment on Deno 2.1.4`, async () => {
      const process = await start(name);
      const { path, body } = FIRST_PAYMENT[name];
      const options = { key, body };
      const response = await keyedCall(process.origin, "POST", `/${name}${path}`, options);
      assert.deepEqual([response.status, response.body.status], [201, "completed"]);
      assert.ok(
        response.headers.get("Location")?.startsWith(
          `https://${PROJECT_REF}.supabase.co/functions/v1/api-v1-payments/v1/payments/pay_`,
        ),
      );
      assert.deepEqual(process.complaints, []);
    });
  }
});

/** The files of a function by Deno's own analysis of its imports, and its `deno.json`. */
async function importsOf(root: string, name: string): Promise<string[]> {
  const folder = join(root, "supabase/functions", name);
  const info = [Deno.execPath(), "info", "--json", "--no-lock"];
  const files_of = ["--config", join(folder, "deno.json"), join(folder, "index.ts")];
  const { modules } = JSON.parse(await outputOf([...info, ...files_of]));
  const files = (modules as { local?: string; specifier: string }[])
    .filter(({ specifier }) => specifier.startsWith("file:"))
    .map(({ local }) => local!);
  const real = await Deno.realPath(root);
  return [...files, join(real, "supabase/functions", name, "deno.json")]
    .map((path) => relative(real, path)).sort();
}
