/**
 * Reads blocks of a chain again, after the chain has undone final blocks. New transfers become
 * provider events as usual, and stored events stay stored. The operator must know the final
 * transfers that are gone, because their money is booked.
 */

import type { ProviderAccount } from "../../domain/providers/connector.ts";
import { Chain } from "./evm_chain.ts";
import { placeAfter } from "./evm_poll.ts";
import { readEvmSettings } from "./evm_settings.ts";

/** A stored final event that the operator compares with the chain. */
interface ReadProviderEvent {
  reference: string;
  tx_hash: string;
  log_index: number;
  address: string;
  amount_minor: number;
  currency: string;
}

/**
 * Returns the cursor from which the poll reads the blocks after a final one, and the time of this
 * block. Throws if a node fails, the nodes disagree, or the block is not final.
 */
export async function rereadAfter(
  account: ProviderAccount,
  number: number,
  signal: AbortSignal,
): Promise<{ cursor: unknown; at_ms: number }> {
  const chain = new Chain(readEvmSettings(account.settings), account.secret, signal);
  const { final } = await chain.heads();
  if (number > final) throw new Error(`the last final block is ${final}`);
  const block = await chain.block(number);
  if (block === null) throw new Error(`a node does not have the block ${number}`);
  return { cursor: placeAfter(block), at_ms: block.time * 1000 };
}

/**
 * Returns the references of the events whose transfers are no longer on the chain. A transfer whose
 * log has another index now counts as gone, because it becomes a new event.
 */
export async function goneFrom(
  account: ProviderAccount,
  provider_events: readonly ReadProviderEvent[],
  signal: AbortSignal,
): Promise<string[]> {
  const chain = new Chain(readEvmSettings(account.settings), account.secret, signal);
  const receipts = await chain.receipts(provider_events.map(({ tx_hash }) => tx_hash));
  return provider_events.filter(({ tx_hash, log_index, address, amount_minor, currency }) => {
    const receipt = receipts.get(tx_hash);
    if (receipt === undefined) throw new Error(`the receipt of ${tx_hash} is too long`);
    return !receipt?.transfers.some((transfer) =>
      transfer.log_index === log_index && transfer.asset === currency &&
      transfer.to === address.toLowerCase() && transfer.amount_minor === amount_minor
    );
  }).map(({ reference }) => reference);
}
