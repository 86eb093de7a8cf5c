/** Launches kill_server.ts, which runs both functions in a process that a test can kill. */

import { fileURLToPath } from "node:url";
import { runProgram } from "../common/running_program.ts";
import { MASTER_SECRET, RELAY_TOKEN } from "./service.ts";

const SERVER = fileURLToPath(new URL("./kill_server.ts", import.meta.url));

/** A server process. */
export interface ServerProcess {
  base_url: string;
  pid: number;
  /** Sends SIGKILL and waits for the end of the process. A second call does nothing. */
  kill(): Promise<void>;
}

/**
 * Launches a server over a database and resolves when it serves.
 * @param options.lease_ms the lease of the deliveries that its dispatcher leases
 * @param options.env further variables of its process
 * @param options.port the port of a server that was killed before; by default a free port
 */
export async function launchServer(
  database_url: string,
  options: { lease_ms: number; port?: number; env?: Record<string, string> },
): Promise<ServerProcess> {
  const program = runProgram(["run", "-A", SERVER], {
    DATABASE_URL: database_url,
    MASTER_SECRET,
    RELAY_TOKEN,
    LEASE_MS: String(options.lease_ms),
    PORT: String(options.port ?? 0),
    ...options.env,
  });
  const [base_url] = await program.printed(/http:.*(?=\n)/);
  return {
    base_url,
    pid: program.pid,
    async kill() {
      program.kill("SIGKILL");
      await program.ended;
    },
  };
}
