/**
 * Provider events of a chain: a transfer is in a block, is final or was undone, and the time of a
 * payment is over. The reference of a final event is its transaction and log without the block, so
 * a transfer is booked once even if it moves to another block.
 */

import type { ProviderAccount, ProviderEvent } from "../../domain/providers/connector.ts";
import type { WatchedDeposit } from "../../store/chain_store.ts";
import type { Block, ChainTransfer } from "./evm_chain.ts";
import { readEvmSettings } from "./evm_settings.ts";

export function transferEvent(
  account: ProviderAccount,
  deposit: WatchedDeposit,
  transfer: ChainTransfer & { time: number },
  is_final: boolean,
): ProviderEvent {
  const { tx_hash, log_index, block_hash, asset, amount_minor, time } = transfer;
  const log = `${tx_hash}:${log_index}`;
  return {
    ...common(account, deposit, time),
    reference: is_final ? log : `${log}:${block_hash}:received`,
    object_id: log,
    state: is_final ? "succeeded" : "received",
    amount_minor,
    currency: asset,
    chain: { tx_hash, log_index, ...(!is_final && { block_hash }) },
  };
}

/** The event of a transfer that the chain has undone. */
export function goneEvent(
  account: ProviderAccount,
  deposit: WatchedDeposit,
  { tx_hash, log_index, block_hash, currency, amount_minor }: WatchedDeposit["unfinal"][number],
  time: number,
): ProviderEvent {
  const log = `${tx_hash}:${log_index}`;
  return {
    ...common(account, deposit, time),
    reference: `${log}:${block_hash}:reorged`,
    object_id: log,
    state: "reorged",
    currency,
    amount_minor,
    chain: { tx_hash, log_index, block_hash },
  };
}

/**
 * The event that the time of a payment is over. While transfers can be undone it has another
 * reference: it changes nothing if they are the whole amount, and the payment ends later if they
 * are undone.
 */
export function expiryEvent(account: ProviderAccount, deposit: WatchedDeposit): ProviderEvent {
  const { address, expires_at, unfinal } = deposit;
  return {
    ...common(account, deposit, Date.parse(expires_at) / 1000),
    reference: `${address}:expired${unfinal.length > 0 ? ":unfinal" : ""}`,
    op: "abandon",
    state: "failed",
    failure_code: "expired",
  };
}

/**
 * The event that a final block has more transfers to an address than a node sends. Nobody has
 * counted them, so the operator looks.
 */
export function unreadEvent(
  account: ProviderAccount,
  deposit: WatchedDeposit,
  { number, hash, time }: Block,
): ProviderEvent {
  const { address } = deposit;
  return {
    ...common(account, deposit, time),
    reference: `${address}:${hash}:${number}:unread`,
    reason:
      `block ${number} has more transfers to ${address} than a node sends, and none of them ` +
      "is booked",
    op: "adjustment",
    state: "succeeded",
    subject_id: null,
    provider_reference: null,
  };
}

export function openedEvent(
  account: ProviderAccount,
  deposit: Pick<WatchedDeposit, "payment_id" | "address" | "currency">,
  amount_minor: number,
  at_ms: number,
): ProviderEvent {
  return {
    ...common(account, deposit, at_ms / 1000),
    reference: `${deposit.address}:opened`,
    state: "pending",
    amount_minor,
  };
}

function common(
  account: ProviderAccount,
  { payment_id, address, currency }: Pick<WatchedDeposit, "payment_id" | "address" | "currency">,
  time: number,
) {
  return {
    account_id: account.id,
    object_id: address,
    op: "authorize",
    subject_id: payment_id,
    refund_id: null,
    provider_reference: address,
    amount_minor: 0,
    currency,
    at: new Date(time * 1000).toISOString(),
    livemode: readEvmSettings(account.settings).is_main,
  } satisfies Partial<ProviderEvent>;
}
