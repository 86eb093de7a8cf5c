/** Both functions in one process, as the local start and `deno task serve` run them. */

import { openDependencies } from "../../../shared/functions/dependencies.ts";
import { createPaymentsFunction } from "../../../shared/functions/payments_function.ts";
import { createSandboxFunction } from "../../../shared/functions/sandbox_function.ts";
import type { EdgeFunctions, LocalServer } from "./local_server.ts";
import type { Shutdown } from "./shutdown.ts";

export interface StopTimes {
  /** Time that requests in flight have. */
  drain_ms: number;
  /** Time that a proxy has to notice it; by default 0. */
  notice_ms?: number;
}

/**
 * Opens both functions. The shutdown stops the server, which waits for requests in flight, and then
 * closes their dependencies: attempts under way are recorded or given back.
 * @param env reads the variables of the functions
 * @param stopServer stops the server of this process
 */
export function openFunctions(
  env: (name: string) => string | undefined,
  stopServer: LocalServer["stop"],
  shutdown: Shutdown,
  { drain_ms, notice_ms }: StopTimes,
): EdgeFunctions {
  const dependencies = openDependencies(env);
  shutdown.add(() => dependencies.close());
  shutdown.add(() => stopServer(drain_ms, notice_ms));
  // First, because the server waits for requests in flight.
  shutdown.add(() => dependencies.webhooks?.inboxes.close());
  return {
    "api-v1-payments": createPaymentsFunction(dependencies),
    "api-v1-sandbox": createSandboxFunction(dependencies),
  };
}

/** Throws if the functions are not healthy. Calls them directly, not over the network. */
export async function expectHealthy(functions: EdgeFunctions): Promise<void> {
  const request = new Request("http://127.0.0.1/api-v1-payments/health");
  const response = await functions["api-v1-payments"](request);
  const body = await response.text();
  if (response.status !== 200) {
    throw new Error(`The service is not healthy: GET /health returns ${response.status} ${body}`);
  }
}
