/** A worker: a further process of an instance at its port (workers.ts). */

import { expectHealthy, openFunctions, type StopTimes } from "./functions.ts";
import { runUntilEnd } from "./launch.ts";
import { type LocalServer, openLocalServer, type ServerOptions } from "./local_server.ts";
import { endWithInput, type Shutdown } from "./shutdown.ts";

/** Where a worker listens, and how it stops. */
interface WorkerOptions extends ServerOptions, StopTimes {
  port: number;
}

/**
 * Runs this process as a worker, with the environment of the functions. It opens the port when it
 * can serve, so no request gets 503 because of its start.
 */
export async function runWorker(
  shutdown: Shutdown,
  env: (name: string) => string | undefined,
  { port, drain_ms, notice_ms = 0, ...options }: WorkerOptions,
): Promise<void> {
  stopWithFirst(shutdown);
  await runUntilEnd(shutdown, async () => {
    let server: LocalServer | null = null;
    const stop = async (...times: [number, number?]) => await server?.stop(...times);
    const functions = openFunctions(env, stop, shutdown, { drain_ms, notice_ms });
    await expectHealthy(functions);
    server = await openLocalServer(port, { ...options, sharing: "worker" });
    server.serve(functions);
  });
}

/** Stops when the first process does. A signal to all processes reaches this one by itself. */
function stopWithFirst(shutdown: Shutdown): void {
  let ending: Promise<never> | undefined;
  const end = () => ending ??= shutdown.run().then(() => Deno.exit(0));
  endWithInput(end, ["SIGINT", "SIGTERM", "SIGHUP"]);
}
