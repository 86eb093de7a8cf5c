/**
 * A node that responds with made-up blocks and logs, for limits and for load. A block has one
 * transaction with all of its logs.
 */

import { serve } from "./node_proxy.ts";
import { TRANSFER_TOPIC } from "../../../shared/connectors/evm/evm_chain.ts";

/** The token of the double. */
export const DOUBLE_TOKEN = "0x5FbDB2315678afecb367f032d93F642f64180aa3";

/** The sender of all of its transfers. */
export const DOUBLE_PAYER = "0x0000000000000000000000000000000000000001";

/** Unix seconds of its block 0. The others follow each second. */
export const DOUBLE_ZERO_S = 1_700_000_000;

/** The chain of a double. */
interface DoubleChain {
  head: number;
  final: number;
  /** Receivers of one unit each, by block. */
  paid: Map<number, readonly string[]>;
  /** Most blocks of `eth_getLogs`. */
  span_max: number;
  /** Most logs of a response; by default any number. */
  logs_max?: number;
  /** The message of the error for too many blocks. */
  error?: string;
}

const TOO_MANY = "query returned more than 10000 results";
/** Returns a number or an address in hex as a word of 32 bytes. */
const padded = (text: string) => `0x${text.replace("0x", "").toLowerCase().padStart(64, "0")}`;
const hex = (value: number) => `0x${value.toString(16)}`;

/** The hash of a block of the double. */
export function doubleHash(number: number): string {
  return padded(hex(number + 1));
}

/** Starts a node. `logs` counts the requests for logs, `bodies` all requests and batches. */
export function startNodeDouble(chain: DoubleChain) {
  const count = { logs: 0, bodies: 0 };
  const block = (number: number) => ({
    number: hex(number),
    hash: doubleHash(number),
    timestamp: hex(DOUBLE_ZERO_S + number),
  });
  const respond = ({ id, ...request }: { id: number; method: string; params: unknown[] }) => ({
    ...{ jsonrpc: "2.0", id, ...reply(request) },
  });
  const reply = ({ method, params }: { method: string; params: unknown[] }) => {
    if (method === "eth_getBlockByNumber") {
      const names: Record<string, number> = { latest: chain.head, finalized: chain.final };
      const name = String(params[0]);
      return { result: block(names[name] ?? Number(name)) };
    }
    if (method === "eth_getTransactionCount") return { result: "0x1" };
    if (method === "eth_getTransactionByHash") {
      return { result: { from: DOUBLE_PAYER, nonce: "0x0" } };
    }
    if (method === "eth_getTransactionReceipt") {
      const found = { status: "0x1", blockNumber: "0x1", blockHash: doubleHash(1), logs: [] };
      return { result: found };
    }
    count.logs++;
    const { fromBlock, toBlock, topics } = params[0] as Record<string, string> & {
      topics: [string, string | null, string[]?];
    };
    const [from, to] = [Number(fromBlock), Number(toBlock)];
    if (to - from >= chain.span_max) {
      return { error: { code: -32_602, message: chain.error ?? TOO_MANY } };
    }
    const wanted = topics[2] && new Set(topics[2]);
    const result = [...chain.paid].filter(([number]) => number >= from && number <= to)
      .flatMap(([number, receivers]) =>
        receivers.map((to, at) => ({
          address: DOUBLE_TOKEN,
          topics: [TRANSFER_TOPIC, padded(DOUBLE_PAYER), padded(to)],
          data: padded("0x1"),
          blockNumber: hex(number),
          blockHash: block(number).hash,
          transactionHash: padded(hex(number)),
          logIndex: hex(at),
        })).filter(({ topics }) => wanted === undefined || wanted.has(topics[2]!))
      );
    if (result.length > (chain.logs_max ?? Infinity)) {
      return { error: { code: -32_005, message: TOO_MANY } };
    }
    return { result };
  };
  const { url, close } = serve((body) => {
    count.bodies++;
    return Response.json(Array.isArray(body) ? body.map(respond) : respond(body));
  });
  return { url, count, [Symbol.asyncDispose]: close };
}
