/**
 * Finds the results of payouts in final blocks. A payout through a signer is matched by its nonce.
 * An exported payout is matched by the first transfer with its destination, token and amount. Each
 * transfer settles one payout of one account.
 */

import type { ProviderAccount, ProviderEvent } from "../../domain/providers/connector.ts";
import type { ChainPayout, ChainStore } from "../../store/chain_store.ts";
import { type OutgoingTransfer, PayoutChain } from "./evm_payout_chain.ts";
import { type EvmSettings, readEvmSettings } from "./evm_settings.ts";

/** The final blocks whose transfers are read, both included. */
interface FinalRange {
  from: number;
  to: number;
}

/**
 * Returns the provider events of payouts in a range of final blocks. Throws if a node fails, or the
 * nodes disagree.
 */
export async function payoutEvents(
  account: ProviderAccount,
  { from, to }: FinalRange,
  signal: AbortSignal,
  store: ChainStore,
): Promise<ProviderEvent[]> {
  const settings = readEvmSettings(account.settings);
  const { signer_address } = settings;
  if (signer_address === null) return [];
  const open = await store.openPayouts(account.id);
  if (open.length === 0) return [];
  const chain = new PayoutChain(settings, signer_address, account.secret, signal);
  const left = new Map(open.map((payout) => [payout.operation_id, payout]));
  const transfers = (await chain.outgoing(from, to))
    .filter((transfer) => open.some((payout) => isPaidBy(payout, transfer, settings)));
  const nonces = await chain.nonces([...new Set(transfers.map(({ tx_hash }) => tx_hash))]);
  // After the open payouts, so that a payout which has left them shows here.
  const taken = new Set(
    await store.takenTransfers(
      account.id,
      transfers.map((transfer) => ({
        reference: referenceOf(transfer),
        nonce: nonces.get(transfer.tx_hash) ?? null,
      })),
    ),
  );
  const times = await chain.times(transfers);
  const provider_events: ProviderEvent[] = [];
  for (const transfer of transfers) {
    if (taken.has(referenceOf(transfer))) continue;
    const alike = [...left.values()].filter((each) => isPaidBy(each, transfer, settings));
    const nonce = nonces.get(transfer.tx_hash) ?? null;
    const payout = alike.find((each) => each.nonce !== null && each.nonce === nonce) ??
      alike.find(({ is_exported }) => is_exported);
    if (!payout) continue;
    left.delete(payout.operation_id);
    provider_events.push({
      ...commonOf(account, payout, settings, times.get(transfer.block_number)),
      reference: referenceOf(transfer),
      object_id: transfer.tx_hash,
      state: "succeeded",
      chain: { tx_hash: transfer.tx_hash, log_index: transfer.log_index },
    });
  }
  provider_events.push(...await revertedEvents(account, [...left.values()], settings, chain, to));
  return provider_events;
}

function referenceOf({ tx_hash, log_index }: OutgoingTransfer): string {
  return `${tx_hash}:${log_index}:paid`;
}

/** Reports whether a transfer can be the one of a payout. */
function isPaidBy(
  { destination, amount_minor, currency }: ChainPayout,
  { contract, to, amount }: OutgoingTransfer,
  { contracts }: EvmSettings,
): boolean {
  return destination.toLowerCase() === to && BigInt(amount_minor) === amount &&
    contracts[currency]?.toLowerCase() === contract;
}

/**
 * Returns the events of reverted transactions in final blocks. The chain orders the transactions of
 * the signer by nonce, so the first one that is not final ends the search. The search reads
 * receipts only, because most nodes keep the state of the last blocks only.
 */
async function revertedEvents(
  account: ProviderAccount,
  payouts: readonly ChainPayout[],
  settings: EvmSettings,
  chain: PayoutChain,
  final: number,
): Promise<ProviderEvent[]> {
  const count = await chain.count("latest", true);
  const used = payouts.filter(({ nonce }) => nonce !== null && nonce < count)
    .sort((one, other) => one.nonce! - other.nonce!);
  const provider_events: ProviderEvent[] = [];
  for (const payout of used) {
    const found = await minedOf(payout, chain);
    if (found === null) continue;
    if (found.block_number > final) break;
    if (found.has_worked) continue;
    const times = await chain.times([found]);
    provider_events.push({
      ...commonOf(account, payout, settings, times.get(found.block_number)),
      reference: `${found.tx_hash}:reverted`,
      object_id: found.tx_hash,
      state: "failed",
      failure_code: "onchain_reverted",
      chain: { tx_hash: found.tx_hash },
    });
  }
  return provider_events;
}

/** Returns the mined transaction of a payout; null: none of the known hashes is in a block. */
async function minedOf({ tx_hashes }: ChainPayout, chain: PayoutChain) {
  const [first] = await chain.mined(tx_hashes);
  return first === undefined ? null : { tx_hash: first[0], ...first[1] };
}

function commonOf(
  { id }: ProviderAccount,
  { op, subject_id, refund_id, amount_minor, currency }: ChainPayout,
  { is_main }: EvmSettings,
  time: number | undefined,
) {
  if (time === undefined) throw new Error("A node in rpc_urls is missing a final block");
  return {
    account_id: id,
    op,
    subject_id,
    refund_id,
    provider_reference: null,
    amount_minor,
    currency,
    at: new Date(time * 1000).toISOString(),
    livemode: is_main,
  } satisfies Partial<ProviderEvent>;
}
