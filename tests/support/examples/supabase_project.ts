/**
 * A Supabase project with the service and examples/supabase_orders: a database that is set up like
 * Supabase's, to which the real CLI pushes, and the uploaded functions as processes of Deno 2.1.4.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import postgres from "postgres";
import { PaymentsClient } from "../../../packages/client/mod.ts";
import { makeSandboxKey } from "../database/api_keys.ts";
import { block } from "../documents/operations_document.ts";
import { codeBlocks } from "../documents/readme_document.ts";
import { type FunctionProcess, startFunctions } from "../supabase/function_process.ts";
import { openManagementApi, writeFiles } from "../supabase/management_api.ts";
import { copyProject, PROJECT_REF } from "../supabase/supabase_cli.ts";
import { startSupabaseServer } from "../supabase/supabase_server.ts";

const README = new URL("../../../examples/supabase_orders/README.md", import.meta.url);

/** Follows the READMEs: deploys the service and then the example. */
export async function openSupabaseProject() {
  await using opening = new AsyncDisposableStack();
  const project = await copyProject();
  opening.defer(() => project.close());
  const api = await openManagementApi(project.path);
  opening.defer(() => api.close());
  const server = await startSupabaseServer(17);
  opening.defer(() => server.close());
  const sql = postgres(server.admin_url, { max: 1, onnotice: () => {} });
  opening.defer(() => sql.end());

  const run = async (script: string) => {
    const { code, stdout, stderr } = await project.runScript(script, api.profile, server.url);
    assert.equal(code, 0, stderr + stdout);
    assert.doesNotMatch(stderr + stdout, /WARN/);
  };
  const service = await block("Deploying to a Supabase project", "console");
  await run(service.replaceAll("<ref>", PROJECT_REF));
  const key = await makeSandboxKey(server.url);
  const folder = await Deno.makeTempDir({ prefix: "payments-uploaded-" });
  opening.defer(() => Deno.remove(folder, { recursive: true }));
  const start = async (name: string, environment: Record<string, string>) => {
    const deployed = api.functions.get(name);
    assert.ok(deployed, `${name} is not deployed`);
    await writeFiles(join(folder, name), deployed);
    const variables = { SUPABASE_DB_URL: server.url, ...environment };
    const process = await startFunctions([name], variables, () => {}, join(folder, name));
    opening.defer(() => process.close());
    return process;
  };
  const own = {
    SUPABASE_URL: `https://${PROJECT_REF}.supabase.co`,
    CHECKOUT_URL: "https://pay.example.com/",
    // The receiver is a process of this machine.
    ALLOW_PRIVATE_WEBHOOKS: "true",
    ...Object.fromEntries(api.secrets),
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
  const given = Object.fromEntries(
    ["PAYMENTS_API_KEY", "WEBHOOK_SECRET"].map((name) => [name, api.secrets.get(name)!]),
  );
  const checkout = await start("checkout", { ...given, PAYMENTS_BASE_URL: payments.origin });
  const webhook = await start("payment-webhook", given);
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
    /** The types that the CLI generates for the tables and views of the example, formatted. */
    async types() {
      const target = `--remote=${server.url}`;
      const { code, stdout, stderr } = await project.run(
        ...["gen", "types", "--schema", "public,payments", target],
      );
      assert.equal(code, 0, stderr);
      // The CLI first says that the server of the test has no TLS.
      const types = stdout.slice(stdout.indexOf("export type Json"));
      const format = new Deno.Command(Deno.execPath(), {
        args: ["fmt", "--line-width", "100", "--ext", "ts", "-"],
        stdin: "piped",
        stdout: "piped",
      }).spawn();
      const writer = format.stdin.getWriter();
      await writer.write(new TextEncoder().encode(types));
      await writer.close();
      return new TextDecoder().decode((await format.output()).stdout);
    },
    /** Lines that the functions of the example have printed. */
    complaints: () => [checkout, webhook].flatMap(({ complaints }: FunctionProcess) => complaints),
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}
