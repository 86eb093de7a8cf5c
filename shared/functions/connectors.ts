/** The connectors by name. */

import type { Connector, ConnectorFinder } from "../domain/providers/connector.ts";
import type { BankStore } from "../store/bank_store.ts";
import type { ChainStore } from "../store/chain_store.ts";
import { bankConnector } from "../connectors/bank/bank_connector.ts";
import { evmConnector } from "../connectors/evm/evm_connector.ts";
import { sandboxConnector } from "../sandbox/sandbox_connector.ts";
import { stripeConnector } from "../connectors/stripe/stripe_connector.ts";

export function createConnectors(chain_store: ChainStore, bank_store: BankStore): ConnectorFinder {
  const connectors: readonly Connector[] = [
    sandboxConnector(),
    stripeConnector(),
    evmConnector(chain_store),
    bankConnector(bank_store),
  ];
  return (name) => connectors.find((connector) => connector.name === name) ?? null;
}
