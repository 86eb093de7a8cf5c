/** The connectors by name. */

import type { Connector, ConnectorFinder } from "../domain/providers/connector.ts";
import type { MethodKind } from "../schema/payment.ts";
import type { BankStore } from "../store/bank_store.ts";
import type { ChainStore } from "../store/chain_store.ts";
import { BANK_METHODS, bankConnector } from "../connectors/bank/bank_connector.ts";
import { EVM_METHODS, evmConnector } from "../connectors/evm/evm_connector.ts";
import { sandboxConnector } from "../sandbox/sandbox_connector.ts";
import { STRIPE_METHODS, stripeConnector } from "../connectors/stripe/stripe_connector.ts";

/** The kinds of payment methods that the connectors of live accounts serve. */
export const LIVE_METHODS: ReadonlyMap<string, readonly MethodKind[]> = new Map([
  ["stripe", STRIPE_METHODS],
  ["evm", EVM_METHODS],
  ["bank", BANK_METHODS],
]);

/** Creates the connectors. */
export function createConnectors(chain_store: ChainStore, bank_store: BankStore): ConnectorFinder {
  const connectors: readonly Connector[] = [
    sandboxConnector(),
    stripeConnector(),
    evmConnector(chain_store),
    bankConnector(bank_store),
  ];
  return (name) => connectors.find((connector) => connector.name === name) ?? null;
}
