/**
 * The service on a loopback port, over a database of its own, and a client that records requests
 * and responses.
 */

import {
  type Exchange,
  PaymentsClient,
  type PaymentsClientOptions,
} from "../../../packages/client/mod.ts";
import { openLocalServer } from "../../../apps/server/local/local_server.ts";
import { createPaymentsFunction } from "../../../shared/functions/payments_function.ts";
import { createSandboxFunction } from "../../../shared/functions/sandbox_function.ts";
import { startService, type TestService } from "./service.ts";

/** The served product. */
export interface ServedService {
  service: TestService;
  base_url: string;
  client: PaymentsClient;
  exchanges: Exchange[];
  /** Another client, by default with the same key. */
  clientWith(options: Partial<PaymentsClientOptions>): PaymentsClient;
}

/** Runs a test over the served product. */
export async function withServedService(
  run: (served: ServedService) => Promise<void>,
  settings: Parameters<typeof startService>[0] = {},
): Promise<void> {
  const server = await openLocalServer(0);
  const service = await startService({ base_url: server.base_url, ...settings });
  server.serve({
    "api-v1-payments": createPaymentsFunction(service.deps),
    "api-v1-sandbox": createSandboxFunction(service.deps),
  });
  const exchanges: Exchange[] = [];
  const clientWith = (options: Partial<PaymentsClientOptions>) =>
    new PaymentsClient({ apiKey: service.key.text, baseUrl: server.base_url, ...options });
  const client = clientWith({ onExchange: (exchange) => exchanges.push(exchange) });
  try {
    await run({ service, base_url: server.base_url, client, exchanges, clientWith });
  } finally {
    await server.stop(5_000);
    await service.close();
  }
}
