/**
 * Pinned values of the main networks: chain ids and token contracts. A wrong contract would credit
 * worthless tokens, so settings cannot change the contracts of a main network.
 * Sources: developers.circle.com/stablecoins/usdc-contract-addresses,
 * tether.to/supported-protocols. No test can check these values, so a person compares them with the
 * two pages before each release.
 */

import type { Stablecoin } from "../../core/currency.ts";
import type { Network } from "../../core/wallet_address.ts";

/** A network of the Ethereum family. */
export type EvmNetwork = Exclude<Network, "solana" | "tron">;

interface MainNetwork {
  chain_id: number;
  /** EIP-55. */
  contracts: Readonly<Record<Stablecoin, string>>;
  coin: "ETH" | "POL";
  /** Default of `max_fee`: the most that one payout may cost, in the coin. */
  max_fee: string;
  /** Default of `max_tip`: a tip up to this one is allowed whatever the base fee is, in gwei. */
  max_tip: string;
}

/**
 * The main networks. All of them support the block tag `finalized`, which is the default finality
 * (docs/going-live/chain.md describes it for each network).
 *
 * USDC is always Circle's own token, never the bridged USDC.e. Tether issues no USDT on base and
 * optimism. There, USDT is the token of the network's own bridge, which no issuer's page lists; the
 * source is the token list of the bridge (ethereum-optimism.github.io). USDT0 on optimism,
 * 0x01bFF41798a0BcF287b996046Ca68b395DbC1071, is another token, and the service does not accept it.
 *
 * The gas limit of a payout is at least 120 000 (evm_payout_chain.ts), so the defaults of `max_fee`
 * allow these prices of gas:
 * - ethereum 166 gwei. The base fee was below 100 gwei on nearly all days since 2023.
 * - base and optimism 8 gwei. Their base fees are usually below 0.1 gwei.
 * - arbitrum 16 gwei. Its base fee begins at 0.01 gwei, but its gas contains the data on Ethereum.
 * - polygon 8 333 gwei. Its base fee is usually below 500 gwei.
 *
 * Tips are a few gwei at most on Ethereum, near zero on its rollups, and at least 25 gwei on
 * polygon, where validators drop transactions with less.
 */
export const EVM_NETWORKS: Readonly<Record<EvmNetwork, MainNetwork>> = {
  ethereum: {
    chain_id: 1,
    contracts: {
      USDC: "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48",
      USDT: "0xdAC17F958D2ee523a2206206994597C13D831ec7",
    },
    coin: "ETH",
    max_fee: "0.02",
    max_tip: "5",
  },
  base: {
    chain_id: 8453,
    contracts: {
      USDC: "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913",
      USDT: "0xfde4C96c8593536E31F229EA8f37b2ADa2699bb2",
    },
    coin: "ETH",
    max_fee: "0.001",
    max_tip: "1",
  },
  polygon: {
    chain_id: 137,
    contracts: {
      USDC: "0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359",
      USDT: "0xc2132D05D31c914a87C6611C10748AEb04B58e8F",
    },
    coin: "POL",
    max_fee: "1",
    max_tip: "150",
  },
  arbitrum: {
    chain_id: 42161,
    contracts: {
      USDC: "0xaf88d065e77c8cC2239327C5EDb3A432268e5831",
      USDT: "0xFd086bC7CD5C481DCC9C85ebE478A1C0b69FCbb9",
    },
    coin: "ETH",
    max_fee: "0.002",
    max_tip: "1",
  },
  optimism: {
    chain_id: 10,
    contracts: {
      USDC: "0x0b2C639c533813f4Aa9D7837CAf62653d097Ff85",
      USDT: "0x94b008aA00579c1307B0EF2c499aD98a8ce58e58",
    },
    coin: "ETH",
    max_fee: "0.001",
    max_tip: "1",
  },
};

/** Reports whether a chain is a main network, where tokens are real money. */
export function isMainChain(chain_id: number): boolean {
  return Object.values(EVM_NETWORKS).some((network) => network.chain_id === chain_id);
}
