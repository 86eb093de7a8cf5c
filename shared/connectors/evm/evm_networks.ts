/**
 * The main networks that are pinned: chain ids, token contracts and the default finality. A wrong
 * contract would credit worthless tokens, so settings cannot change the contracts of a main network.
 * Sources: developers.circle.com/stablecoins/usdc-contract-addresses, tether.to/supported-protocols.
 * Before each release a person compares the table with these pages. No test can do it.
 */

import type { Stablecoin } from "../../core/currency.ts";
import type { Network } from "../../core/wallet_address.ts";

/** A network of the Ethereum family. */
export type EvmNetwork = Exclude<Network, "solana" | "tron">;

/** A main network. */
interface MainNetwork {
  chain_id: number;
  /** EIP-55. */
  contracts: Readonly<Record<Stablecoin, string>>;
}

/**
 * The main networks. All of them know the block tag `finalized`, which is the default finality: on
 * ethereum two epochs are voted for, on polygon a milestone is, and the blocks of base, arbitrum and
 * optimism are final when the block of ethereum with their data is.
 *
 * USDC is always Circle's own token, and never the bridged USDC.e. Tether issues no USDT on base and
 * optimism: there the token is that of the network's own bridge, which no page of an issuer names.
 * The source of these two is the token list of the bridge (ethereum-optimism.github.io). USDT0 on
 * optimism, 0x01bFF41798a0BcF287b996046Ca68b395DbC1071, is another token and is not taken.
 */
export const EVM_NETWORKS: Readonly<Record<EvmNetwork, MainNetwork>> = {
  ethereum: {
    chain_id: 1,
    contracts: {
      USDC: "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48",
      USDT: "0xdAC17F958D2ee523a2206206994597C13D831ec7",
    },
  },
  base: {
    chain_id: 8453,
    contracts: {
      USDC: "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913",
      USDT: "0xfde4C96c8593536E31F229EA8f37b2ADa2699bb2",
    },
  },
  polygon: {
    chain_id: 137,
    contracts: {
      USDC: "0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359",
      USDT: "0xc2132D05D31c914a87C6611C10748AEb04B58e8F",
    },
  },
  arbitrum: {
    chain_id: 42161,
    contracts: {
      USDC: "0xaf88d065e77c8cC2239327C5EDb3A432268e5831",
      USDT: "0xFd086bC7CD5C481DCC9C85ebE478A1C0b69FCbb9",
    },
  },
  optimism: {
    chain_id: 10,
    contracts: {
      USDC: "0x0b2C639c533813f4Aa9D7837CAf62653d097Ff85",
      USDT: "0x94b008aA00579c1307B0EF2c499aD98a8ce58e58",
    },
  },
};

/** Reports whether the chain is one of the main networks, whose money is real. */
export function isMainChain(chain_id: number): boolean {
  return Object.values(EVM_NETWORKS).some((network) => network.chain_id === chain_id);
}
