/**
 * The requests of payouts: the signer's transactions, its balance and the fees of the network. With
 * two nodes it compares the results on which a decision depends.
 */

import * as z from "zod";
import { Chain, Log, LOGS_DEADLINE_MS, paddedAddress, TRANSFER_TOPIC } from "./evm_chain.ts";
import { agreed, callRpc, callRpcBatch, Hash, hex, Quantity, RpcError } from "./evm_rpc.ts";
import { type FeeHistory, type FeeQuote, type Fees, quoteOf } from "./evm_fees.ts";
import type { EvmSettings } from "./evm_settings.ts";

/** Unused gas costs nothing. A transfer of these tokens takes at most 70 000. */
const GAS_MIN = 120_000;
const GAS_RESERVE = 1.2;
/** Blocks with whose prices a node's proposal is compared: four minutes on Ethereum. */
const NEWEST_BLOCKS = 20;
/** Of their tips, the one that a fifth of the gas has paid at most: enough to be in a block. */
const TIP_PERCENTILE = 20;

const Amount = z.string().regex(/^0x[0-9a-fA-F]{1,64}$/).transform(BigInt);
const Block = z.object({ baseFeePerGas: Quantity });
const History = z.object({
  baseFeePerGas: z.array(Quantity).max(NEWEST_BLOCKS + 1),
  reward: z.array(z.array(Quantity)).max(NEWEST_BLOCKS).nullish(),
});
const Receipt = z.object({ status: Quantity, blockNumber: Quantity }).nullable();

/** A transfer of a token that has left the signer. */
export interface OutgoingTransfer {
  tx_hash: string;
  log_index: number;
  block_number: number;
  /** Lower case. */
  contract: string;
  to: string;
  amount: bigint;
}

interface Mined {
  block_number: number;
  /** False: it was reverted. */
  has_worked: boolean;
}

interface PayoutTransaction extends Fees {
  contract: string;
  data: string;
  nonce: number;
  gas: number;
}

export class PayoutChain extends Chain {
  readonly #signer: string;

  constructor(settings: EvmSettings, signer: string, secret: string | null, signal: AbortSignal) {
    super(settings, secret, signal);
    this.#signer = signer;
  }

  /**
   * Returns the number of the signer's transactions up to a block.
   * @param least true: the least number of the nodes; false: the highest one
   */
  async count(block: number | "latest" | "pending", least: boolean): Promise<number> {
    const at = typeof block === "number" ? hex(block) : block;
    const params = [this.#signer, at];
    const counts = await this.#all("eth_getTransactionCount", params, Quantity);
    return least ? Math.min(...counts) : Math.max(...counts);
  }

  /** Returns the signer's balance of a token: the lowest one that a node reports. */
  async balance(contract: string): Promise<bigint> {
    const data = `0x70a08231${paddedAddress(this.#signer).slice(2)}`;
    const params = [{ to: contract, data }, "latest"];
    const balances = await this.#all("eth_call", params, Amount);
    return balances.reduce((least, balance) => balance < least ? balance : least);
  }

  /**
   * Returns the gas limit of a transaction of the signer. Throws if it would revert. A node can
   * estimate a replacement too low, as if the replaced transaction had already been paid.
   */
  async gas(contract: string, data: string): Promise<number> {
    const params = [{ from: this.#signer, to: contract, data }, "latest"];
    const estimates = await this.#all("eth_estimateGas", params, Quantity);
    return Math.max(GAS_MIN, Math.ceil(Math.max(...estimates) * GAS_RESERVE));
  }

  /** Returns the prices of gas that each node reports. */
  quotes(): Promise<FeeQuote[]> {
    return this.each(async (url) => {
      const [tip, block, history] = await Promise.all([
        this.#ask(url, "eth_maxPriorityFeePerGas", [], Quantity),
        this.#ask(url, "eth_getBlockByNumber", ["latest", false], Block),
        this.#history(url),
      ]);
      return quoteOf({ tip, base_fee: block.baseFeePerGas }, history);
    });
  }

  /** Returns the prices of a node's newest blocks; none if it does not serve them. */
  async #history(url: string): Promise<FeeHistory> {
    try {
      const params = [hex(NEWEST_BLOCKS), "latest", [TIP_PERCENTILE]];
      const { baseFeePerGas, reward } = await this.#ask(url, "eth_feeHistory", params, History);
      return { base_fees: baseFeePerGas, tips: (reward ?? []).flat() };
    } catch (error) {
      if (!(error instanceof RpcError && error.kind === "refused")) throw error;
      return { base_fees: [], tips: [] };
    }
  }

  /** Returns transactions in their blocks by hash; without those that no block has. */
  async mined(tx_hashes: readonly string[]): Promise<Map<string, Mined>> {
    const hashes = [...new Set(tx_hashes)];
    const mined = new Map<string, Mined>();
    const receipts = await this.#same(hashes, "eth_getTransactionReceipt", Receipt);
    for (const [at, receipt] of receipts.entries()) {
      if (receipt === null) continue;
      const { blockNumber: block_number, status } = receipt;
      mined.set(hashes[at]!, { block_number, has_worked: status === 1 });
    }
    return mined;
  }

  /** Returns the nonces of transactions of the signer by hash; null: it is not the signer's. */
  async nonces(tx_hashes: readonly string[]): Promise<Map<string, number | null>> {
    const result = z.object({ from: z.string().toLowerCase(), nonce: Quantity });
    const transactions = await this.#same(tx_hashes, "eth_getTransactionByHash", result);
    const signer = this.#signer.toLowerCase();
    return new Map(transactions.map(({ from, nonce }, at) => [
      tx_hashes[at]!,
      from === signer ? nonce : null,
    ]));
  }

  /** Returns the outgoing transfers of the signer in the account's tokens, in a range of blocks. */
  async outgoing(from: number, to: number): Promise<OutgoingTransfer[]> {
    const filter = {
      fromBlock: hex(from),
      toBlock: hex(to),
      address: Object.values(this.settings.contracts),
      topics: [TRANSFER_TOPIC, paddedAddress(this.#signer)],
    };
    const request = { method: "eth_getLogs", params: [filter], result: z.array(Log) };
    const signal = AbortSignal.any([this.signal, AbortSignal.timeout(LOGS_DEADLINE_MS)]);
    const found = await this.each(async (url) =>
      (await callRpc(url, request, signal)).map(readTransfer)
    );
    return agreed(found, `the transfers in blocks ${from} to ${to}`, fingerprint);
  }

  async send(signer_url: string, transaction: PayoutTransaction): Promise<string> {
    const { contract, data, nonce, gas, max_fee, priority_fee } = transaction;
    const params = [{
      from: this.#signer,
      to: contract,
      data,
      value: "0x0",
      nonce: hex(nonce),
      gas: hex(gas),
      chainId: hex(this.settings.chain_id),
      type: "0x2",
      maxFeePerGas: hex(max_fee),
      maxPriorityFeePerGas: hex(priority_fee),
    }];
    return await this.#ask(signer_url, "eth_sendTransaction", params, Hash);
  }

  /** Asks for each transaction. Throws if the nodes disagree. */
  async #same<T>(
    tx_hashes: readonly string[],
    method: string,
    result: z.ZodType<T>,
  ): Promise<T[]> {
    const requests = tx_hashes.map((tx_hash) => ({ method, params: [tx_hash], result }));
    const found = await this.each((url) => callRpcBatch(url, requests, this.signal));
    return agreed(found, "a transaction", JSON.stringify);
  }

  #ask<T>(url: string, method: string, params: readonly unknown[], result: z.ZodType<T>) {
    return callRpc(url, { method, params, result }, this.signal);
  }

  #all<T>(method: string, params: readonly unknown[], result: z.ZodType<T>): Promise<T[]> {
    return this.each((url) => this.#ask(url, method, params, result));
  }
}

function readTransfer(log: z.infer<typeof Log>): OutgoingTransfer {
  return {
    tx_hash: log.transactionHash,
    log_index: log.logIndex,
    block_number: log.blockNumber,
    contract: log.address,
    to: `0x${log.topics[2]!.slice(-40)}`,
    amount: BigInt(log.data),
  };
}

function fingerprint(transfers: readonly OutgoingTransfer[]): string {
  return transfers.map((each) => Object.values(each).map(String).join()).sort().join("\n");
}
