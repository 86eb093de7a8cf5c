/** The connectors by name. */

import type { Connector } from "../domain/providers/connector.ts";
import { evmConnector } from "./evm/evm_connector.ts";
import { sandboxConnector } from "./sandbox_connector.ts";
import { stripeConnector } from "./stripe/stripe_connector.ts";

/** The connectors that an account at a provider can have. */
export const LIVE_CONNECTORS: readonly Connector[] = [stripeConnector(), evmConnector()];
const CONNECTORS: readonly Connector[] = [sandboxConnector(), ...LIVE_CONNECTORS];

/** Returns the connector with this name, or null. */
export function findConnector(name: string): Connector | null {
  return CONNECTORS.find((connector) => connector.name === name) ?? null;
}
