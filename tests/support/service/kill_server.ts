/**
 * Serves both functions over a database, in a process that a test can kill. It uses the parts of
 * the local start, without the database. A restarted server can use the same port.
 */

import { openLocalServer } from "../../../apps/server/local/local_server.ts";
import { startTicker } from "../../../apps/server/local/ticker.ts";
import { Vault } from "../../../shared/core/vault.ts";
import { createDependencies } from "../../../shared/functions/dependencies.ts";
import { createPaymentsFunction } from "../../../shared/functions/payments_function.ts";
import { createSandboxFunction } from "../../../shared/functions/sandbox_function.ts";
import { onLines, settingsOf, tell } from "../common/process.ts";

/** The settings of the process. */
export interface ServerSettings {
  port: number;
  database_url: string;
  master_secret: string;
  relay_token: string;
  /** Duration of a lease. Tests wait for the leases of killed servers. */
  lease_ms: number;
  /** Timeout of an attempt. It must be shorter than the lease. */
  attempt_ms: number;
  /** Secrets of providers by the names of their variables; others are in the environment. */
  provider_secrets?: Record<string, string>;
  /** URL of the page of checkouts; by default it is not hosted. */
  checkout_url?: string;
  /** Whether requests are logged; by default as the product does. */
  request_log?: boolean;
  /** The keys of bank details; by default none. */
  bank_details_keys?: string;
  /** Longest time of an operation of a provider; by default that of the product. */
  provider_deadline_ms?: number;
}

/** An unexpected error in the server. */
export interface ServerFault {
  route: string;
  fault: string;
}

/** A line that sets the server's clock ahead. */
export interface ClockLine {
  ahead_ms: number;
}

let ahead_ms = 0;
const settings = settingsOf<ServerSettings>();
const server = await openLocalServer(settings.port);
const deps = createDependencies({
  database_url: settings.database_url,
  base_url: server.base_url,
  webhook_master_secret: settings.master_secret,
  ...(settings.checkout_url !== undefined && { checkout_url: settings.checkout_url }),
  relay_token: settings.relay_token,
  allow_private_webhooks: true,
  webhook_lease_ms: settings.lease_ms,
  webhook_sender: { timeouts: { connect_ms: settings.attempt_ms, total_ms: settings.attempt_ms } },
  provider_secret: (name) => settings.provider_secrets?.[name] ?? Deno.env.get(name),
  ...(settings.request_log !== undefined && { request_log: settings.request_log }),
  ...(settings.bank_details_keys !== undefined &&
    { vault: Vault.read(settings.bank_details_keys) }),
  ...(settings.provider_deadline_ms !== undefined &&
    { provider_deadline_ms: settings.provider_deadline_ms }),
  clock: () => Date.now() + ahead_ms,
  // Tests make the database unavailable on purpose: then responses are 503, and log entries of
  // requests can be lost (ADR 0018). Every other fault is a breach.
  log: ({ route, status, fault }) => {
    if (status === 503 || route === "request log") return;
    if (fault && !fault.includes("service_unavailable")) {
      tell({ route, fault } satisfies ServerFault);
    }
  },
});
const functions = {
  "api-v1-payments": createPaymentsFunction(deps),
  "api-v1-sandbox": createSandboxFunction(deps),
};
server.serve(functions);
startTicker(functions["api-v1-payments"], settings.relay_token);
tell({ port: server.port });
onLines((line) => ahead_ms = (line as ClockLine).ahead_ms);
