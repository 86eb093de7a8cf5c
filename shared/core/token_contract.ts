/**
 * The contracts of stablecoins on Ethereum, and the links that ask a wallet for a transfer. The
 * addresses are those that Circle and Tether publish (evm_networks.ts names the pages). A token
 * with the same symbol at another address is another token.
 */

import type { Stablecoin } from "./currency.ts";

/** Chain id of the main network of Ethereum (EIP-155). */
export const ETHEREUM_CHAIN_ID = 1;

/** The token contracts on the main network of Ethereum, EIP-55. */
export const ETHEREUM_CONTRACTS: Record<Stablecoin, string> = {
  USDC: "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48",
  USDT: "0xdAC17F958D2ee523a2206206994597C13D831ec7",
};

/** A transfer of tokens that a wallet is asked to make. */
interface TokenTransfer {
  contract: string;
  chain_id: number;
  /** The receiver. */
  address: string;
  amount_minor: number;
}

/** Makes the EIP-681 link of a transfer. Wallets read it from a QR code. */
export function tokenTransferUri(transfer: TokenTransfer): string {
  const { contract, chain_id, address, amount_minor } = transfer;
  return `ethereum:${contract}@${chain_id}/transfer?address=${address}&uint256=${amount_minor}`;
}
