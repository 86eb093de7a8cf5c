/**
 * A Supabase project with the service and examples/supabase_orders: a database that is set up like
 * Supabase's, to which the real CLI pushes, and the uploaded functions as processes of Deno 2.1.4.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { PaymentsClient } from "../../../packages/client/mod.ts";
import { outputOf } from "../common/running_command.ts";
import { makeSandboxKey } from "../database/api_keys.ts";
import { codeBlocks } from "../documents/readme_document.ts";
import { deployService } from "../supabase/deployed_service.ts";
import type { FunctionProcess } from "../supabase/function_process.ts";
import { PROJECT_REF } from "../supabase/supabase_cli.ts";
import { connect } from "../database/database.ts";

const README = new URL("../../../examples/supabase_orders/README.md", import.meta.url);

/** Follows the README: deploys the service and then the example. */
export async function openSupabaseProject() {
  await using opening = new AsyncDisposableStack();
  const { api, server, project, run, start } = await deployService(opening);
  const sql = opening.use(connect(server.admin_url));
  const key = await makeSandboxKey(server.url);
  const own = {
    CHECKOUT_URL: "https://pay.example.com/",
    // The receiver is a process of this machine.
    ALLOW_PRIVATE_WEBHOOKS: "true",
  };
  const payments = await start("api-v1-payments", own);
  const sandbox = await start("api-v1-sandbox", own);
  const client = new PaymentsClient({
    apiKey: key,
    baseUrl: payments.origin,
    // Each function is a process with a port of its own.
    fetch: (url, init) =>
      fetch(url.replace(`${payments.origin}/api-v1-s`, `${sandbox.origin}/api-v1-s`), init),
  });
  const endpoint = await client.webhookEndpoints.create({
    url: `https://${PROJECT_REF}.supabase.co/functions/v1/payment-webhook`,
    events: ["payment.*"],
  });

  const readme = codeBlocks(await Deno.readTextFile(README));
  const [copy] = readme.filter(({ language }) => language === "sh");
  const deploy = readme.find(({ text }) => text.includes("functions deploy"))!;
  await run(`test_key=${key} webhook_secret=${endpoint.secret}\n${copy!.text}${deploy.text}`);
  const checkout = await start("checkout", { PAYMENTS_BASE_URL: payments.origin });
  const webhook = await start("payment-webhook");
  // Each process of the test has an address of its own.
  const webhook_url = `${webhook.origin}/payment-webhook`;
  await client.webhookEndpoints.update(endpoint.id, { url: webhook_url });
  const kept = opening.move();
  return {
    /** As `supabase_admin`. */
    sql,
    client,
    endpoint_id: endpoint.id,
    checkout_url: `${checkout.origin}/checkout`,
    webhook_url,
    /** Settings of the functions in config.toml, by name. */
    verify_jwt: Object.fromEntries(
      [...api.functions].map(([name, { metadata }]) => [name, metadata["verify_jwt"]]),
    ) as Record<string, unknown>,
    /** Checks the types of the page with those that the CLI generates, as step 2 makes them. */
    async checkTypes() {
      const target = `--remote=${server.url}`;
      const { code, stdout, stderr } = await project.run(
        ...["gen", "types", "--schema", "public,payments", target],
      );
      assert.equal(code, 0, stderr);
      const web = join(project.path, "examples/supabase_orders/web");
      // The CLI first says that the server of the test has no TLS.
      const types = stdout.slice(stdout.indexOf("export type Json"));
      await Deno.writeTextFile(join(web, "database.types.ts"), types);
      await outputOf([Deno.execPath(), "check", "../try_stack.ts"], { cwd: web });
    },
    /** Lines that the functions of the example have printed. */
    complaints: () => [checkout, webhook].flatMap(({ complaints }: FunctionProcess) => complaints),
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}
