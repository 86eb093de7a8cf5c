/**
 * The books of a service without payments by stablecoin, for connectors that read no chain.
 * A poll of such a connector never asks for addresses.
 */

import type { ChainBooks } from "../../../shared/domain/providers/connector.ts";

/** Books without a watched address. */
export const no_deposits: ChainBooks = { deposits: () => Promise.resolve([]) };
