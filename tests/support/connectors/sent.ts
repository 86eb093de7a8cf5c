/** Sends one operation to a server with scripted responses. */

import { stripeConnector } from "../../../shared/connectors/stripe/stripe_connector.ts";
import type { Operation, ProviderReply } from "../../../shared/domain/providers/connector.ts";
import { type Received, startFaultServer, type Step } from "./fault_server.ts";
import { account } from "./stripe_case.ts";

/** A deadline that no test meets. */
export const patient = () => AbortSignal.timeout(30_000);

/** Sends an operation to a server with these steps. Returns the reply and the requests. */
export async function sent(
  operation: Operation,
  ...steps: Step[]
): Promise<{ reply: ProviderReply; received: Received[] }> {
  await using server = await startFaultServer(...steps);
  const settings = { base_url: server.base_url };
  const reply = await stripeConnector().charges.send(account({ settings }), operation, patient());
  return { reply, received: server.received };
}
