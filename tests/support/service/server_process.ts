/** Launches kill_server.ts, which runs both functions in a process that a test can kill. */

import { launch } from "../common/process.ts";
import type { ServerSettings } from "./kill_server.ts";
import { MASTER_SECRET, RELAY_TOKEN } from "./service.ts";

/** A server process. */
export interface ServerProcess {
  base_url: string;
  pid: number;
  /** Sends SIGKILL and waits for the end of the process. A second call does nothing. */
  kill(): Promise<void>;
}

/** Longest time of an attempt, so that tests wait only shortly for those of killed servers. */
const ATTEMPT_MS = 1_000;

/**
 * Launches a server over a database and resolves when it serves.
 * @param options.lease_ms the lease of the deliveries that its dispatcher leases
 * @param options.env further variables of its process
 * @param options.port the port of a server that was killed before; by default a free port
 */
export async function launchServer(
  database_url: string,
  { env = {}, ...options }: {
    lease_ms: number;
    port?: number;
    request_log?: boolean;
    checkout_url?: string;
    provider_secrets?: Record<string, string>;
    env?: Record<string, string>;
  },
): Promise<ServerProcess> {
  const settings: ServerSettings = {
    ...{ port: 0, request_log: false, attempt_ms: ATTEMPT_MS, database_url },
    ...{ master_secret: MASTER_SECRET, relay_token: RELAY_TOKEN },
    ...options,
  };
  const program = import.meta.resolve("./kill_server.ts");
  const { ready, pid, kill } = await launch<{ port: number }>(program, settings, () => {}, env);
  const base_url = `http://127.0.0.1:${ready.port}/functions/v1`;
  return { base_url, pid, kill: async () => void await kill() };
}
