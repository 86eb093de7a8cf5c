/** The connectors by name. */

import type { Connector } from "../domain/providers/connector.ts";
import { sandboxConnector } from "./sandbox_connector.ts";
import { stripeConnector } from "./stripe/stripe_connector.ts";

const CONNECTORS: readonly Connector[] = [sandboxConnector(), stripeConnector()];

/** Returns the connector with this name, or null. */
export function findConnector(name: string): Connector | null {
  return CONNECTORS.find((connector) => connector.name === name) ?? null;
}
