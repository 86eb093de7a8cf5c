/** An API server of the run: both functions on a port that stays the same when it is restarted. */

import { openLocalServer } from "../scripts/local/local_server.ts";
import { startTicker } from "../scripts/local/ticker.ts";
import { createDependencies } from "../shared/http/dependencies.ts";
import { createPaymentsFunction } from "../shared/http/payments_function.ts";
import { createSandboxFunction } from "../shared/http/sandbox_function.ts";
import { onLines, settingsOf, tell } from "./process.ts";

/** What a server is launched with. */
export interface ServerSettings {
  port: number;
  database_url: string;
  master_secret: string;
  relay_token: string;
  /** How long a claim of a delivery lasts; the run waits for those of the dead. */
  lease_ms: number;
  /** How long an attempt may take: less than the lease. */
  attempt_ms: number;
}

/** A fault of the server's own. */
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
  relay_token: settings.relay_token,
  allow_private_webhooks: true,
  webhook_lease_ms: settings.lease_ms,
  webhook_sender: { timeouts: { connect_ms: settings.attempt_ms, total_ms: settings.attempt_ms } },
  clock: () => Date.now() + ahead_ms,
  // A database that is away is what the run is about; any other fault is a finding.
  log: ({ route, fault }) => {
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
