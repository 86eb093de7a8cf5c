/**
 * Reads blocks and transfers from the nodes of an account. With two nodes it compares every result,
 * and throws if the results differ or one node is behind.
 */

import * as z from "zod";
import type { Stablecoin } from "../../core/currency.ts";
import {
  agreed,
  callRpc,
  callRpcBatch,
  Hash,
  hex,
  Quantity,
  RpcError,
  type RpcRequest,
  rpcUrls,
} from "./evm_rpc.ts";
import type { EvmSettings } from "./evm_settings.ts";

/** keccak-256 of `Transfer(address,address,uint256)`. */
export const TRANSFER_TOPIC = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";
/** A node whose head is older than the other's by more is behind. */
const LAG_SECONDS_MAX = 120;
/** Deadline of a request for logs, shorter than that of a page: then the range halves. */
export const LOGS_DEADLINE_MS = 5_000;

const Header = z.object({ number: Quantity, hash: Hash, timestamp: Quantity })
  .transform(({ number, hash, timestamp }) => ({ number, hash, time: timestamp }));
/** A log of a contract, as a receipt or a search has it. */
export const Log = z.object({
  address: z.string().toLowerCase(),
  topics: z.array(Hash),
  data: z.string(),
  blockNumber: Quantity,
  blockHash: Hash,
  blockTimestamp: Quantity.optional().catch(undefined),
  transactionHash: Hash,
  logIndex: Quantity,
  removed: z.boolean().optional(),
});

export interface Block {
  number: number;
  /** Lower case, as all hashes here. */
  hash: string;
  /** Unix seconds. */
  time: number;
}

/** A transfer of one of the account's tokens to an address. */
export interface ChainTransfer {
  asset: Stablecoin;
  /** Lower case. */
  to: string;
  amount_minor: number;
  tx_hash: string;
  log_index: number;
  block_number: number;
  block_hash: string;
  /** Unix seconds; null if the node does not send it with the transfer. */
  time: number | null;
}

interface Receipt {
  /** Lower case. */
  block_hash: string;
  block_number: number;
  /** Its transfers of the account's tokens. */
  transfers: ChainTransfer[];
}

interface Transfers {
  /** In the order of the chain. */
  transfers: ChainTransfer[];
  /** Addresses that are left out: the block has more transfers to each than a node sends. */
  unread: string[];
}

/** A range of blocks, both included. */
interface BlockRange {
  from: number;
  to: number;
}

export class Chain {
  protected readonly urls: readonly string[];
  protected readonly settings: EvmSettings;
  protected readonly signal: AbortSignal;

  constructor(settings: EvmSettings, secret: string | null, signal: AbortSignal) {
    this.urls = rpcUrls(settings, secret);
    this.settings = settings;
    this.signal = signal;
  }

  /** Returns the newest block that all nodes have, and the newest one that is final. */
  async heads(): Promise<{ head: Block; final: number }> {
    const tags = await this.each((url) => this.#tags(url));
    const times = tags.map(({ head }) => head.time);
    if (Math.max(...times) - Math.min(...times) > LAG_SECONDS_MAX) {
      throw new Error("One of the nodes in rpc_urls is behind the other");
    }
    const lowest = Math.min(...tags.map(({ head }) => head.number));
    const head = await this.block(lowest);
    if (head === null) throw new Error("A node in rpc_urls no longer has a block that it had");
    const { confirmations } = this.settings;
    const final = confirmations === null
      ? Math.min(lowest, ...tags.map(({ final }) => final))
      : lowest - confirmations + 1;
    return { head, final: Math.max(0, final) };
  }

  /** Returns the block with a number; null if a node does not have it. Throws if nodes differ. */
  async block(number: number): Promise<Block | null> {
    const blocks = await this.each((url) => callRpc(url, headerRequest(hex(number)), this.signal));
    if (blocks.includes(null)) return null;
    return agreed(blocks, `the block ${number}`, (block) => block!.hash);
  }

  /**
   * Returns the number of the first block that is late enough, by halving. `last` is one, and none
   * before `first` is.
   */
  async firstBlock(last: number, isLate: (block: Block) => boolean, first = 0): Promise<number> {
    let low = first;
    let high = last;
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      const block = await this.block(middle);
      if (block === null) throw new Error("A node in rpc_urls does not have its final blocks");
      if (isLate(block)) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  /**
   * Returns the transfers to addresses in a range. Transfers of zero are left out. If one block has
   * too many for a response, its addresses are halved.
   *
   * @throws {RpcError} for example `limit`, if the range of several blocks is too large
   */
  async transfers(range: BlockRange, addresses: readonly string[]): Promise<Transfers> {
    if (addresses.length === 0 || range.from > range.to) return { transfers: [], unread: [] };
    try {
      return { transfers: await this.#transfers(range, addresses), unread: [] };
    } catch (error) {
      if (range.from < range.to || !isTooLong(error)) throw error;
      if (addresses.length === 1) return { transfers: [], unread: [...addresses] };
      const [first, second] = halves(addresses);
      const [one, other] = await Promise.all([
        this.transfers(range, first),
        this.transfers(range, second),
      ]);
      return {
        transfers: inOrder([...one.transfers, ...other.transfers]),
        unread: [...one.unread, ...other.unread],
      };
    }
  }

  async #transfers(range: BlockRange, addresses: readonly string[]): Promise<ChainTransfer[]> {
    const request = this.#logsRequest(range, addresses);
    const signal = AbortSignal.any([this.signal, AbortSignal.timeout(LOGS_DEADLINE_MS)]);
    const found = await this.each(async (url) =>
      this.#read(range, await callRpc(url, request, signal))
    );
    return agreed(found, `the transfers in blocks ${range.from} to ${range.to}`, fingerprint);
  }

  /** Returns the times of the blocks of transfers, in Unix seconds by number. */
  async times(
    transfers: readonly { block_number: number; time?: number | null }[],
  ): Promise<Map<number, number>> {
    const times = new Map<number, number>();
    const missing = new Set<number>();
    for (const { block_number, time = null } of transfers) {
      if (time === null) missing.add(block_number);
      else times.set(block_number, time);
    }
    const requests = [...missing].map((number) => headerRequest(hex(number)));
    for (const block of await callRpcBatch(this.urls[0]!, requests, this.signal)) {
      if (block) times.set(block.number, block.time);
    }
    return times;
  }

  /**
   * Returns the receipts of transactions by hash; null for one that is in no block. One that is too
   * long for a response is left out.
   */
  async receipts(tx_hashes: readonly string[]): Promise<Map<string, Receipt | null>> {
    const hashes = [...new Set(tx_hashes)];
    try {
      const receipts = await this.#receipts(hashes);
      return new Map(hashes.map((tx_hash, at) => [tx_hash, receipts[at]!]));
    } catch (error) {
      if (!isTooLong(error)) throw error;
      if (hashes.length === 1) return new Map();
      const [first, second] = halves(hashes);
      const [one, other] = await Promise.all([this.receipts(first), this.receipts(second)]);
      return new Map([...one, ...other]);
    }
  }

  async #receipts(tx_hashes: readonly string[]): Promise<(Receipt | null)[]> {
    const requests = tx_hashes.map((tx_hash) => ({
      method: "eth_getTransactionReceipt",
      params: [tx_hash],
      result: z.object({ blockHash: Hash, blockNumber: Quantity, logs: z.array(Log) }).nullable(),
    }));
    const all = { from: 0, to: Number.MAX_SAFE_INTEGER };
    const found = await this.each(async (url) =>
      (await callRpcBatch(url, requests, this.signal)).map((found) =>
        found && {
          block_hash: found.blockHash,
          block_number: found.blockNumber,
          transfers: this.#read(all, found.logs),
        }
      )
    );
    return agreed(
      found,
      "a transaction",
      (receipts) =>
        receipts.map((each) => each && [each.block_hash, fingerprint(each.transfers)].join())
          .join(),
    );
  }

  async #tags(url: string): Promise<{ head: Block; final: number }> {
    const names = this.settings.confirmations === null ? ["latest", "finalized"] : ["latest"];
    const [head, final] = await callRpcBatch(url, names.map(headerRequest), this.signal);
    if (!head || final === null) throw new Error("A node in rpc_urls has no finalized block");
    return { head, final: final?.number ?? 0 };
  }

  /** Reads from each node. */
  protected each<T>(read: (url: string) => Promise<T>): Promise<T[]> {
    return Promise.all(this.urls.map(read));
  }

  #logsRequest({ from, to }: BlockRange, addresses: readonly string[]) {
    const address = Object.values(this.settings.contracts);
    const topics = [TRANSFER_TOPIC, null, addresses.map(paddedAddress)];
    const filter = { fromBlock: hex(from), toBlock: hex(to), address, topics };
    return { method: "eth_getLogs", params: [filter], result: z.array(Log) };
  }

  #read(range: BlockRange, logs: readonly z.infer<typeof Log>[]): ChainTransfer[] {
    const assets = new Map(
      Object.entries(this.settings.contracts).map(([asset, contract]) => [
        contract.toLowerCase(),
        asset as Stablecoin,
      ]),
    );
    const transfers: ChainTransfer[] = [];
    for (const log of logs) {
      const asset = assets.get(log.address);
      const [topic, , to] = log.topics;
      const is_transfer = topic === TRANSFER_TOPIC && log.topics.length === 3 &&
        /^0x[0-9a-fA-F]{64}$/.test(log.data) && log.removed !== true &&
        log.blockNumber >= range.from && log.blockNumber <= range.to;
      if (asset === undefined || to === undefined || !is_transfer) continue;
      const amount = BigInt(log.data);
      if (amount === 0n) continue;
      if (amount > BigInt(Number.MAX_SAFE_INTEGER)) {
        throw new Error(`The amount of the transaction ${log.transactionHash} is too large`);
      }
      transfers.push({
        asset,
        to: `0x${to.slice(-40)}`,
        amount_minor: Number(amount),
        tx_hash: log.transactionHash,
        log_index: log.logIndex,
        block_number: log.blockNumber,
        block_hash: log.blockHash,
        time: log.blockTimestamp ?? null,
      });
    }
    return inOrder(transfers);
  }
}

function inOrder(transfers: ChainTransfer[]): ChainTransfer[] {
  return transfers.sort((a, b) => a.block_number - b.block_number || a.log_index - b.log_index);
}

/**
 * Returns half of a span of blocks that a node has refused as too large, or did not read in time.
 * Throws any other error, and that of a span that cannot be halved.
 * @param signal of the whole page: without it there is no time for a smaller span
 */
export function halvedSpan(span: number, error: unknown, signal: AbortSignal): number {
  const is_too_large = error instanceof RpcError && ["limit", "timeout"].includes(error.kind);
  if (!is_too_large || span === 1 || signal.aborted) throw error;
  return Math.ceil(span / 2);
}

function isTooLong(error: unknown): boolean {
  return error instanceof RpcError && error.is_too_long;
}

function halves(list: readonly string[]): [string[], string[]] {
  const middle = Math.ceil(list.length / 2);
  return [list.slice(0, middle), list.slice(middle)];
}

function headerRequest(block: string): RpcRequest<Block | null> {
  // The result of a transform is not the input of the shape.
  const result = Header.nullable() as z.ZodType<Block | null>;
  return { method: "eth_getBlockByNumber", params: [block, false], result };
}

/** Returns an address as a topic of a log, or as an argument of a call. */
export function paddedAddress(address: string): string {
  return `0x${address.slice(2).toLowerCase().padStart(64, "0")}`;
}

function fingerprint(transfers: readonly ChainTransfer[]): string {
  return transfers.map(({ asset, to, amount_minor, tx_hash, log_index, block_hash }) =>
    [asset, to, amount_minor, tx_hash, log_index, block_hash].join()
  ).join("\n");
}
