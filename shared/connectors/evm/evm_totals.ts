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
import type { ChainStore } from "../../store/chain_store.ts";
import { Chain } from "./evm_chain.ts";
import { RpcError } from "./evm_rpc.ts";
import { readEvmSettings } from "./evm_settings.ts";

const BATCH = 1_000;
const SPAN_FIRST = 2_000;

/** The place of a reading. */
const Cursor = z.object({
  /** The first block of the day, and the last. */
  first: z.number().int(),
  last: z.number().int(),
  span: z.number().int().positive(),
  after: z.number().int().nullable(),
  from: z.number().int(),
  /** By currency. */
  sums: z.record(z.string(), z.number().int()),
});
type Cursor = z.infer<typeof Cursor>;

/**
 * Reads the next batch of addresses in the next range of blocks.
 *
 * @throws {Error} if a node fails, the day is not final, or the cursor is not one of this connector
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
  const deposits = await store.watchedDeposits(account.id, place.after, BATCH);
  if (deposits.length === 0 || place.first > place.last) {
    const settings = readEvmSettings(account.settings);
    const payouts = await store.paidPayouts(account.id, { from_ms, to_ms });
    const { payoutTotals } = await import("./evm_payout_totals.ts");
    await payoutTotals(account, settings, payouts, place.sums, signal);
    return { totals: totalsOf(place) };
  }
  const range = { from: place.from, to: Math.min(place.from + place.span - 1, place.last) };
  try {
    for (const transfer of await chain.transfers(range, deposits.map((each) => each.address))) {
      place.sums[transfer.asset] = (place.sums[transfer.asset] ?? 0) + transfer.amount_minor;
    }
  } catch (error) {
    if (!(error instanceof RpcError && error.kind === "limit") || place.span === 1) throw error;
    return { cursor: { ...place, span: Math.ceil(place.span / 2) } };
  }
  if (range.to < place.last) return { cursor: { ...place, from: range.to + 1 } };
  return { cursor: { ...place, after: deposits.at(-1)!.index, from: place.first } };
}

async function firstPlace(chain: Chain, from: number, to: number): Promise<Cursor> {
  const { final } = await chain.heads();
  const end = await chain.block(final);
  if (end === null || end.time < to) throw new Error("The day is not final on the chain yet");
  const first = await chain.firstBlock(final, ({ time }) => time >= from);
  const last = await chain.firstBlock(final, ({ time }) => time >= to) - 1;
  return { first, last, span: SPAN_FIRST, after: null, from: first, sums: {} };
}

function totalsOf({ sums }: Cursor): ProviderTotal[] {
  return Object.entries(sums).sort(([a], [b]) => a < b ? -1 : 1)
    .map(([currency, net_minor]) => ({ currency, net_minor }));
}
