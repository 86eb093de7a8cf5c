/** The read-only test that shows the operator whether an account on a chain works. */

import * as z from "zod";
import type { ProviderAccount } from "../../domain/providers/connector.ts";
import { depositAddress } from "./evm_address.ts";
import { Chain } from "./evm_chain.ts";
import { callRpc, RpcError, rpcUrls } from "./evm_rpc.ts";
import { type EvmSettings, readEvmSettings } from "./evm_settings.ts";

/** The selectors of `decimals()` and `symbol()`. */
const DECIMALS = "0x313ce567";
const SYMBOL = "0x95d89b41";
/** Decimals of our minor units of stablecoins. */
const MINOR_UNIT_DIGITS = 6;

const Hex = z.string().regex(/^0x[0-9a-fA-F]*$/);

/**
 * Compares the chain id and the tokens on each node, and the heads of both. The symbol of a token
 * is shown but not compared: issuers rename tokens, and a fake token can have any symbol.
 *
 * @returns a line for the operator
 * @throws {Error} with a message for people
 */
export async function testChain(account: ProviderAccount, signal: AbortSignal): Promise<string> {
  const settings = readEvmSettings(account.settings);
  const urls = rpcUrls(settings, account.secret);
  const tokens: string[][] = [];
  for (const [at, url] of urls.entries()) tokens.push(await testNode(settings, at, url, signal));
  const [first, second] = tokens;
  if (second && second.join() !== first!.join()) {
    throw new Error(`the nodes disagree about the tokens: ${first!.join()}, and ${second.join()}`);
  }
  const { head, final } = await new Chain(settings, account.secret, signal).heads();
  const { network, chain_id, xpub, confirmations } = settings;
  const rule = confirmations === null ? "by the tag finalized" : `with ${confirmations} blocks`;
  const advice = second ? "" : ". Nothing confirms the responses of this single node: add a second";
  return `${network} (chain ${chain_id}) is at block ${head.number}, final up to ` +
    `${final} ${rule}, with ${first!.join(" and ")}. The first address of the xpub is ` +
    `${depositAddress(xpub, 0)}: compare it with your wallet${advice}`;
}

/** Returns the tokens in words. */
async function testNode(
  { chain_id, contracts, network }: EvmSettings,
  at: number,
  url: string,
  signal: AbortSignal,
): Promise<string[]> {
  const node = `node ${at + 1} of rpc_urls`;
  const read = (method: string, params: readonly unknown[], reverted?: string) =>
    callRpc(url, { method, params, result: Hex }, signal).catch((error) => {
      const is_reverted = error instanceof RpcError && /revert/i.test(error.message);
      if (reverted !== undefined && is_reverted) return reverted;
      throw new Error(`${node}: ${error.message}`);
    });
  const found = Number(await read("eth_chainId", []));
  if (found !== chain_id) {
    throw new Error(`${node} serves the chain ${found}, and not ${chain_id} (${network})`);
  }
  const tokens: string[] = [];
  for (const [asset, to] of Object.entries(contracts)) {
    const decimals = await read("eth_call", [{ to, data: DECIMALS }, "latest"], "0x");
    if (decimals.length !== 66 || Number(decimals) !== MINOR_UNIT_DIGITS) {
      throw new Error(`${node}: contract.${asset} is not a token with 6 decimals`);
    }
    const symbol = symbolIn(await read("eth_call", [{ to, data: SYMBOL }, "latest"], "0x"));
    tokens.push(`${asset} ${to} (symbol "${symbol}", ${MINOR_UNIT_DIGITS} decimals)`);
  }
  return tokens;
}

/** Decodes an ABI string, or the 32 bytes that some old tokens return instead. */
function symbolIn(data: string): string {
  const bytes = Uint8Array.from(data.slice(2).match(/../g) ?? [], (pair) => parseInt(pair, 16));
  const length = bytes.length > 64 ? bytes[63]! : 0;
  const text = bytes.length > 64 ? bytes.subarray(64, 64 + length) : bytes;
  // The token chooses the text, so nothing in it may control the operator's terminal.
  return new TextDecoder().decode(text).replace(/[^\p{L}\p{N}\p{P}\p{S} ]/gu, "").slice(0, 30);
}
