/** The harmless reading that shows the operator whether an account on a chain works. */

import * as z from "zod";
import type { ProviderAccount } from "../../domain/providers/connector.ts";
import { depositAddress } from "./evm_address.ts";
import { Chain } from "./evm_chain.ts";
import { callRpc, rpcUrls } from "./evm_rpc.ts";
import { type EvmSettings, readEvmSettings } from "./evm_settings.ts";

/** The selector of `decimals()`. */
const DECIMALS = "0x313ce567";
/** Decimals of our minor units of stablecoins. */
const MINOR_UNIT_DIGITS = 6;

const Hex = z.string().regex(/^0x[0-9a-fA-F]*$/);

/**
 * Compares the chain id and the decimals of the tokens on each node, and the heads of both.
 *
 * @returns a line for the operator
 * @throws {Error} with a message for people
 */
export async function testChain(account: ProviderAccount, signal: AbortSignal): Promise<string> {
  const settings = readEvmSettings(account.settings);
  const urls = rpcUrls(settings, account.secret);
  for (const [at, url] of urls.entries()) await testNode(settings, at, url, signal);
  const { head, final } = await new Chain(settings, account.secret, signal).heads();
  const { network, chain_id, contracts, xpub, confirmations } = settings;
  const tokens = Object.entries(contracts).map(([asset, contract]) => `${asset} ${contract}`);
  const rule = confirmations === null ? "by the tag finalized" : `with ${confirmations} blocks`;
  const second = urls.length === 1 ? ". Nothing compares the one node: add a second" : "";
  return `${network} (chain ${chain_id}) answers at block ${head.number}, final until ` +
    `${final} ${rule}, with ${tokens.join(" and ")}. The first address of the xpub is ` +
    `${depositAddress(xpub, 0)}: compare it with your wallet${second}`;
}

async function testNode(
  { chain_id, contracts, network }: EvmSettings,
  at: number,
  url: string,
  signal: AbortSignal,
): Promise<void> {
  const node = `node ${at + 1} of rpc_urls`;
  const read = (method: string, params: readonly unknown[]) =>
    callRpc(url, { method, params, result: Hex }, signal).catch((error) => {
      throw new Error(`${node}: ${error.message}`);
    });
  const found = Number(await read("eth_chainId", []));
  if (found !== chain_id) {
    throw new Error(`${node} serves the chain ${found}, and not ${chain_id} (${network})`);
  }
  for (const [asset, to] of Object.entries(contracts)) {
    const decimals = await read("eth_call", [{ to, data: DECIMALS }, "latest"]);
    if (decimals.length !== 66 || Number(decimals) !== MINOR_UNIT_DIGITS) {
      throw new Error(`${node}: contract.${asset} is not a token with 6 decimals`);
    }
  }
}
