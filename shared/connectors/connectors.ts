/** The connectors by name. */

import type { Connector } from "../domain/providers/connector.ts";

const CONNECTORS: readonly Connector[] = [];

/** Returns the connector with this name, or null. */
export function findConnector(name: string): Connector | null {
  return CONNECTORS.find((connector) => connector.name === name) ?? null;
}
