/** Launches kill_server.ts, which runs both functions in a process that a test can kill. */

import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
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
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", SERVER],
    env: {
      DATABASE_URL: database_url,
      MASTER_SECRET,
      RELAY_TOKEN,
      LEASE_MS: String(options.lease_ms),
      PORT: String(options.port ?? 0),
      ...options.env,
    },
    stdin: "null",
    stdout: "piped",
  }).spawn();
  const output = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  while (!text.includes("\n")) {
    const { value, done } = await output.read();
    assert.ok(!done, "the server ended before it served");
    text += value;
  }
  let is_killed = false;
  return {
    base_url: text.trim(),
    pid: child.pid,
    async kill() {
      if (is_killed) return;
      is_killed = true;
      child.kill("SIGKILL");
      await child.status;
      await output.cancel();
    },
  };
}
