/** Runs HAProxy in front of the service. */

import { findProgram, listens } from "../common/programs.ts";
import { until } from "../common/until.ts";

const PLACES = ["/usr/sbin/haproxy", "/usr/bin/haproxy", "/usr/local/sbin/haproxy"];

/** Returns the path of the program, or null if it is not installed. */
export function findHaproxy(): Promise<string | null> {
  return findProgram(PLACES);
}

/**
 * Starts the proxy, and resolves when it takes connections.
 * @param config the path of its configuration
 * @param port a port at which the configuration listens
 */
export async function runHaproxy(config: string, port: number, env: Record<string, string> = {}) {
  const program = await findHaproxy();
  if (program === null) throw new Error("haproxy is not installed");
  const child = new Deno.Command(program, {
    args: ["-db", "-f", config],
    env,
    stdin: "null",
    stdout: "null",
    stderr: "piped",
  }).spawn();
  const words = new Response(child.stderr).text();
  let has_ended = false;
  const ended = child.status.then(() => has_ended = true);
  const close = async () => {
    if (!has_ended) child.kill("SIGKILL");
    await ended;
    await words;
  };
  await until("haproxy listens", async () => has_ended || await listens(port));
  if (has_ended) throw new Error(`haproxy did not start: ${await words}`);
  return { close };
}
