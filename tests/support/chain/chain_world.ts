/** A chain with a token of 6 decimals, whose source and bytecode token.json has. */

import { encodeAbiParameters, encodeFunctionData, erc20Abi } from "viem";
import type { Anvil } from "./anvil.ts";
import TOKEN from "./token.json" with { type: "json" };

/** An address in hex. */
export type Hex = `0x${string}`;

/** The topic of `Transfer(address,address,uint256)`. */
const TRANSFER = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";
const SUPPLY = 10n ** 15n;
/** Enough for each transaction, and set because the node would refuse one that it sees fail. */
const GAS = "0xf4240";

/** A transfer of a token. Addresses are in lower case. */
export interface ChainTransfer {
  from: string;
  to: string;
  amount: number;
}

/** Encodes the transfer of an amount to an address. */
export function transferOf(to: string, amount: number): Hex {
  const args = [to as Hex, BigInt(amount)] as const;
  return encodeFunctionData({ abi: erc20Abi, functionName: "transfer", args });
}

/** A chain with contracts and a payer. */
export class ChainWorld {
  private constructor(readonly node: Anvil, readonly payer: Hex) {}

  static async open(node: Anvil): Promise<ChainWorld> {
    const [payer] = await node.call<Hex[]>("eth_accounts");
    return new ChainWorld(node, payer!);
  }

  /** Deploys a token, all of which the payer has. */
  async deployToken(): Promise<Hex> {
    const supply = encodeAbiParameters([{ type: "uint256" }], [SUPPLY]);
    const hash = await this.#send(undefined, TOKEN.bytecode + supply.slice(2));
    await this.mine();
    const { contractAddress } = await this.node.call<{ contractAddress: Hex }>(
      "eth_getTransactionReceipt",
      hash,
    );
    return contractAddress;
  }

  /**
   * Sends a transfer and returns the hash of its transaction. It is not in a block yet.
   * @param nonce by default the next one of the node
   */
  async transfer(token: Hex, to: string, amount: number, nonce?: number): Promise<Hex> {
    return await this.#send(token, transferOf(to, amount), nonce);
  }

  /** Returns the transfers that blocks have, the oldest first. */
  async transfers(token: Hex): Promise<ChainTransfer[]> {
    const logs = await this.node.call<{ topics: Hex[]; data: Hex }[]>("eth_getLogs", {
      ...{ fromBlock: "0x0", toBlock: "latest", address: token, topics: [TRANSFER] },
    });
    return logs.map(({ topics, data }) => ({
      from: `0x${topics[1]!.slice(26)}`,
      to: `0x${topics[2]!.slice(26)}`,
      amount: Number(BigInt(data)),
    }));
  }

  async balanceOf(token: Hex, address: Hex): Promise<number> {
    const call = { abi: erc20Abi, functionName: "balanceOf", args: [address] } as const;
    const data = encodeFunctionData(call);
    return Number(await this.node.call<Hex>("eth_call", { to: token, data }, "latest"));
  }

  async mine(blocks = 1): Promise<void> {
    await this.node.call("anvil_mine", `0x${blocks.toString(16)}`);
  }

  async #send(to: string | undefined, data: string, nonce?: number): Promise<Hex> {
    return await this.node.call("eth_sendTransaction", {
      from: this.payer,
      data,
      gas: GAS,
      ...to && { to },
      ...nonce !== undefined && { nonce: `0x${nonce.toString(16)}` },
    });
  }
}
