/**
 * Finds the results of payouts in final blocks. A payout through a signer is matched by its nonce.
 * An exported payout is matched by the first transfer with its destination, token and amount. Each
 * transfer settles one payout.
 */

import type {
  ChainBooks,
  ChainPayout,
  Fact,
  ProviderAccount,
} from "../../domain/providers/connector.ts";
import { type OutgoingTransfer, PayoutChain } from "./evm_payout_chain.ts";
import { type EvmSettings, readEvmSettings } from "./evm_settings.ts";

/** The final blocks whose transfers are read, both included. */
interface FinalRange {
  from: number;
  to: number;
}

/**
 * Returns the facts of payouts in a range of final blocks.
 *
 * @throws {Error} if a node fails, or the nodes disagree
 */
export async function payoutFacts(
  account: ProviderAccount,
  { from, to }: FinalRange,
  signal: AbortSignal,
  books: ChainBooks,
): Promise<Fact[]> {
  const settings = readEvmSettings(account.settings);
  const { signer_address } = settings;
  if (signer_address === null) return [];
  const open = await books.openPayouts(account.id);
  if (open.length === 0) return [];
  const chain = new PayoutChain(settings, signer_address, account.secret, signal);
  const left = new Map(open.map((payout) => [payout.call_id, payout]));
  const facts: Fact[] = [];
  for (const transfer of await chain.outgoing(from, to)) {
    const payout = await paidBy(transfer, [...left.values()], settings, chain);
    if (!payout) continue;
    left.delete(payout.call_id);
    facts.push({
      ...await commonOf(account, payout, settings, chain, transfer.block_number),
      reference: `${transfer.tx_hash}:${transfer.log_index}:paid`,
      state: "succeeded",
      tx_hash: transfer.tx_hash,
    });
  }
  facts.push(...await revertedFacts(account, [...left.values()], settings, chain, to));
  return facts;
}

/** Returns the payout that a transfer has paid, if there is one. */
async function paidBy(
  { tx_hash, contract, to, amount }: OutgoingTransfer,
  payouts: readonly ChainPayout[],
  { contracts }: EvmSettings,
  chain: PayoutChain,
): Promise<ChainPayout | undefined> {
  const alike = payouts.filter((payout) =>
    payout.destination.toLowerCase() === to && BigInt(payout.amount_minor) === amount &&
    contracts[payout.currency]?.toLowerCase() === contract
  );
  if (alike.length === 0) return undefined;
  const nonce = await chain.nonceOf(tx_hash);
  const own = alike.find((payout) => payout.nonce !== null && payout.nonce === nonce);
  return own ?? alike.find(({ is_exported }) => is_exported);
}

/**
 * Returns the facts of reverted transactions in final blocks. The chain orders the transactions of
 * the signer by nonce, so the first one that is not final ends the search. The search reads
 * receipts only, because most nodes keep the state of the last blocks only.
 */
async function revertedFacts(
  account: ProviderAccount,
  payouts: readonly ChainPayout[],
  settings: EvmSettings,
  chain: PayoutChain,
  final: number,
): Promise<Fact[]> {
  const count = await chain.count("latest", true);
  const used = payouts.filter(({ nonce }) => nonce !== null && nonce < count)
    .sort((one, other) => one.nonce! - other.nonce!);
  const facts: Fact[] = [];
  for (const payout of used) {
    const found = await minedOf(payout, chain);
    if (found === null) continue;
    if (found.block_number > final) break;
    if (found.has_worked) continue;
    facts.push({
      ...await commonOf(account, payout, settings, chain, found.block_number),
      reference: `${found.tx_hash}:reverted`,
      state: "failed",
      failure_code: "onchain_reverted",
      tx_hash: found.tx_hash,
    });
  }
  return facts;
}

/** Returns the mined transaction of a payout; null: none of the known hashes is in a block. */
async function minedOf({ tx_hashes }: ChainPayout, chain: PayoutChain) {
  for (const tx_hash of tx_hashes) {
    const mined = await chain.mined(tx_hash);
    if (mined) return { tx_hash, ...mined };
  }
  return null;
}

async function commonOf(
  { id }: ProviderAccount,
  { op, subject_id, refund_id, amount_minor, currency }: ChainPayout,
  { is_main }: EvmSettings,
  chain: PayoutChain,
  block_number: number,
) {
  const block = await chain.block(block_number);
  if (block === null) throw new Error("A node in rpc_urls is missing a final block");
  return {
    account_id: id,
    op,
    subject_id,
    refund_id,
    provider_reference: null,
    amount_minor,
    currency,
    at: new Date(block.time * 1000).toISOString(),
    livemode: is_main,
  } satisfies Partial<Fact>;
}
