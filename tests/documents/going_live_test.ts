/**
 * docs/going-live/stripe.md is true. The test runs its shell blocks in order in one shell, with the
 * local start in place of the deployed service and the double in place of Stripe, and compares its
 * lists with the code. It also runs the statement of docs/operations/deploy.md that an operator
 * pastes into the SQL editor.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { STRIPE_EVENT_TYPES } from "../../shared/connectors/stripe/stripe_events.ts";
import { STRIPE_VERSION } from "../../shared/connectors/stripe/stripe_settings.ts";
import { withTemporaryFolder } from "../support/common/temporary_folder.ts";
import { cloneDatabase, connect } from "../support/database/database.ts";
import { section } from "../support/documents/operations_document.ts";
import { readProjectFile } from "../support/documents/project_files.ts";
import { assertResponse, NamesOfRun } from "../support/documents/readme_responses.ts";
import { codeBlocks, shellExamples } from "../support/documents/readme_document.ts";
import { runInOneShell } from "../support/documents/readme_shell.ts";
import { lacksPrograms } from "../support/common/programs.ts";
import { launchStart, PROJECT_DIR, readCredentials } from "../support/local/local_start.ts";
import { no_stripe_double, startStripeDouble } from "../support/stripe/double.ts";

const PATH = "docs/going-live/stripe.md";
const SECRETS = {
  PROVIDER_STRIPE: "sk_live_document",
  PROVIDER_STRIPE_NOTIFICATIONS: "whsec_document",
};
const page = await readProjectFile(PATH);
const is_skipped = await lacksPrograms(PATH, ["bash", "curl"]);

Deno.test({
  name: `${PATH} gives the shown responses when run in order`,
  ignore: no_stripe_double || is_skipped,
  fn: () =>
    withTemporaryFolder(async (folder) => {
      const double = await startStripeDouble();
      assert.ok(double, "localstripe is not installed");
      const DATA_DIR = join(folder, ".local");
      const product = await launchStart({ DATA_DIR, ...SECRETS });
      try {
        const { base_url, live_key } = await readCredentials(DATA_DIR);
        const given = { DATA_DIR, base_url, live_key, token: "pm_card_visa", ...SECRETS };
        const examples = shellExamples(page);
        const scripts = examples.map(({ script }) =>
          script.replace("--account acme", "--account demo")
            .replace("--methods card", `--methods card --set base_url=${double.base_url}`)
        );
        const exports = Object.entries(given).map(([name, value]) => `export ${name}='${value}'`);
        const { results: [, ...results] } = await runInOneShell(PROJECT_DIR, [
          exports.join("\n"),
          ...scripts,
        ]);
        const names = new NamesOfRun();
        for (const [index, example] of examples.entries()) {
          const { stdout, stderr, code } = results[index]!;
          assert.equal(code, 0, stderr);
          assertResponse(PATH, example, stdout, names);
        }
        assert.equal(results.length, 4);
        const { payment_intent, refund } = await double.books(SECRETS.PROVIDER_STRIPE);
        const amounts = [payment_intent, refund].map((made) => made.map(({ amount }) => amount));
        assert.deepEqual(amounts, [[1999], [1999]]);
      } finally {
        await product.end();
        await double.close();
      }
    }),
});

Deno.test({
  name: `${PATH} creates the webhook endpoint with the version and types of the connector`,
  ignore: is_skipped,
  fn: async () => {
    const { text } = codeBlocks(page).find(({ text }) => text.includes("/v1/webhook_endpoints"))!;
    const stand_ins = `supabase() { :; }\ncurl() { echo "$*"; cat; }\n`;
    const { results: [result] } = await runInOneShell(PROJECT_DIR, [stand_ins + text]);
    const types = [...result!.stdout.matchAll(/enabled_events\[\]=([^&]*)&/g)];
    assert.deepEqual(types.map(([, type]) => type), [...STRIPE_EVENT_TYPES]);
    assert.ok(result!.stdout.includes(` -d api_version=${STRIPE_VERSION} -d @-\n`));
  },
});

Deno.test("docs/operations/deploy.md configures the address and the token of the dispatcher", async () => {
  const steps = await section("Deploying to a Supabase project");
  const { text } = codeBlocks(steps).find(({ language }) => language === "sql")!;
  const statement = text.replace("<ref>", "abcdefgh").replace("<RELAY_TOKEN>", "0".repeat(64));
  await using database = await cloneDatabase();
  await using sql = connect(database.url);
  await sql.unsafe(statement);
  assert.deepEqual([...await sql`select name, value from pay.settings order by name`], [
    { name: "relay_token", value: "0".repeat(64) },
    {
      name: "relay_url",
      value: "https://abcdefgh.supabase.co/functions/v1/api-v1-payments/internal/relay",
    },
  ]);
});
