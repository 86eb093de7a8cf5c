/**
 * Serves both functions over a database, in a child process that a test can kill. It uses the parts
 * of the local start, without the database. Its first line of output is its base URL.
 *
 * Environment: DATABASE_URL, MASTER_SECRET, RELAY_TOKEN, LEASE_MS, PORT (0: a free one), and
 * REQUEST_LOG (`on`: requests are logged).
 */

import { openLocalServer } from "../../../apps/server/local/local_server.ts";
import { startTicker } from "../../../apps/server/local/ticker.ts";
import { createDependencies } from "../../../shared/functions/dependencies.ts";
import { createPaymentsFunction } from "../../../shared/functions/payments_function.ts";
import { createSandboxFunction } from "../../../shared/functions/sandbox_function.ts";

const server = await openLocalServer(Number(Deno.env.get("PORT")));
const deps = createDependencies({
  database_url: Deno.env.get("DATABASE_URL")!,
  base_url: server.base_url,
  webhook_master_secret: Deno.env.get("MASTER_SECRET")!,
  relay_token: Deno.env.get("RELAY_TOKEN")!,
  allow_private_webhooks: true,
  // Tests wait until the leases of killed servers end, so leases and attempts are short.
  webhook_lease_ms: Number(Deno.env.get("LEASE_MS")),
  webhook_sender: { timeouts: { connect_ms: 500, total_ms: 1_000 } },
  request_log: Deno.env.get("REQUEST_LOG") === "on",
  provider_secret: (name) => Deno.env.get(name),
  log: () => {},
});
const functions = {
  "api-v1-payments": createPaymentsFunction(deps),
  "api-v1-sandbox": createSandboxFunction(deps),
};
server.serve(functions);
startTicker(functions["api-v1-payments"], Deno.env.get("RELAY_TOKEN")!);
console.log(server.base_url);
