/**
 * Sums the transfers of a day to the addresses of an account. It finds the blocks of the day by
 * their times and not by the cursor of the poll, so blocks that the poll skipped show as a
 * difference. It throws until the day is final.
 */

import * as z from "zod";
import type {
  ProviderAccount,
  ProviderTotal,
  TotalsTime,
} from "../../domain/providers/connector.ts";
import type { ChainStore, PaidPayout } from "../../store/chain_store.ts";
import { type Block, Chain, halvedSpan } from "./evm_chain.ts";
import { readEvmSettings } from "./evm_settings.ts";

const BATCH = 1_000;
const SPAN_FIRST = 2_000;
/** Payouts in one page: their receipts are four batches. */
const PAYOUTS = 200;

const Cursor = z.object({
  first: z.number().int(),
  /** The last one; null: it is not found yet. */
  last: z.number().int().nullable(),
  /** A final block after the day. */
  end: z.number().int(),
  span: z.number().int().positive(),
  after: z.number().int().nullable(),
  from: z.number().int(),
  /** By currency. */
  sums: z.record(z.string(), z.number().int()),
  /** The reference of the last payout that is read; null: deposits are still read. */
  paid_after: z.string().nullable(),
});
type Cursor = z.infer<typeof Cursor>;

/**
 * Reads the first block of the day, then the last, then each batch of addresses in each range of
 * blocks, then the payouts. Each call reads one part, because it has some seconds. Throws if a node
 * fails, the day is not final, or the cursor is not one of this connector.
 */
export async function readChainTotals(
  account: ProviderAccount,
  { from_ms, to_ms }: TotalsTime,
  cursor: unknown,
  signal: AbortSignal,
  store: ChainStore,
): Promise<{ totals: ProviderTotal[] } | { cursor: unknown }> {
  const chain = new Chain(readEvmSettings(account.settings), account.secret, signal);
  if (cursor === null) return { cursor: await firstPlace(chain, from_ms / 1000, to_ms / 1000) };
  const parsed = Cursor.safeParse(cursor);
  if (!parsed.success) throw new Error("The cursor of the totals is not one of evm");
  const place = parsed.data;
  const { last, sums, paid_after } = place;
  if (last === null) {
    const isNextDay = ({ time }: Block) => time >= to_ms / 1000;
    const next = await chain.firstBlock(place.end, isNextDay, place.first);
    return { cursor: { ...place, last: next - 1 } };
  }
  if (paid_after !== null) {
    const time = { from_ms, to_ms };
    const payouts = await store.paidPayouts(account.id, time, paid_after, PAYOUTS);
    await subtractPayouts(account, payouts, sums, signal);
    return payouts.length < PAYOUTS
      ? { totals: totalsOf(place) }
      : { cursor: { ...place, paid_after: payouts.at(-1)!.reference } };
  }
  const deposits = await store.watchedDeposits(account.id, place.after, BATCH);
  if (deposits.length === 0 || place.first > last) return { cursor: { ...place, paid_after: "" } };
  const range = { from: place.from, to: Math.min(place.from + place.span - 1, last) };
  try {
    // The poll has an exception about addresses that are unread.
    const { transfers } = await chain.transfers(range, deposits.map((each) => each.address));
    for (const { asset, amount_minor } of transfers) {
      sums[asset] = (sums[asset] ?? 0) + amount_minor;
    }
  } catch (error) {
    return { cursor: { ...place, span: halvedSpan(place.span, error, signal) } };
  }
  if (range.to < last) return { cursor: { ...place, from: range.to + 1 } };
  return { cursor: { ...place, after: deposits.at(-1)!.index, from: place.first } };
}

/**
 * Subtracts the payouts that the chain has. A payout that it does not have becomes a difference.
 * @param sums by currency, changed in place
 */
async function subtractPayouts(
  account: ProviderAccount,
  payouts: readonly PaidPayout[],
  sums: Record<string, number>,
  signal: AbortSignal,
): Promise<void> {
  const settings = readEvmSettings(account.settings);
  const { signer_address } = settings;
  if (signer_address === null || payouts.length === 0) return;
  // Only accounts that pay out load it (ADR 0009).
  const { PayoutChain } = await import("./evm_payout_chain.ts");
  const chain = new PayoutChain(settings, signer_address, account.secret, signal);
  const mined = await chain.mined(payouts.map(({ tx_hash }) => tx_hash));
  for (const { tx_hash, currency, amount_minor } of payouts) {
    if (mined.get(tx_hash)?.has_worked) sums[currency] = (sums[currency] ?? 0) - amount_minor;
  }
}

async function firstPlace(chain: Chain, from: number, to: number): Promise<Cursor> {
  const { final } = await chain.heads();
  const end = await chain.block(final);
  if (end === null || end.time < to) throw new Error("The day is not final on the chain yet");
  const first = await chain.firstBlock(final, ({ time }) => time >= from);
  const place = { span: SPAN_FIRST, after: null, from: first, sums: {}, paid_after: null };
  return { first, last: null, end: final, ...place };
}

function totalsOf({ sums }: Cursor): ProviderTotal[] {
  return Object.entries(sums).sort(([a], [b]) => a < b ? -1 : 1)
    .map(([currency, net_minor]) => ({ currency, net_minor }));
}
