/**
 * Sums the movements of all balances of a day, one page of the list for each call. The cursor has
 * the sums so far, in Stripe's minor units, because only the whole sum is rounded to ours.
 */

import * as z from "zod";
import { normalizeCurrency } from "../../core/currency.ts";
import type {
  ProviderAccount,
  ProviderTotal,
  TotalsTime,
} from "../../domain/providers/connector.ts";
import { nearestAmount } from "./stripe_amount.ts";
import { isUnknown } from "./stripe_call.ts";
import { createdBetween, readPage } from "./stripe_lists.ts";
import { BalanceTransaction, expandedOf } from "./stripe_objects.ts";

/** A reading that has not ended after this time begins again, in case its place is not valid. */
const READING_SECONDS_MAX = 86_400;

const Cursor = z.object({
  /** Unix seconds. */
  begun: z.number().int(),
  /** The last movement that the sums contain; null: none. */
  after: z.string().nullable(),
  /** By currency in upper case. */
  sums: z.record(z.string(), z.number().int()),
});

/**
 * Reads the next page of the movements of a time. Throws if Stripe gives no page, or the cursor is
 * not one of this connector.
 */
export async function readTotals(
  account: ProviderAccount,
  { from_ms, to_ms }: TotalsTime,
  cursor: unknown,
  at_ms: number,
  signal: AbortSignal,
): Promise<{ totals: ProviderTotal[] } | { cursor: unknown }> {
  const { begun, after, sums } = readCursor(cursor, Math.floor(at_ms / 1000));
  const time = createdBetween(Math.ceil(from_ms / 1000), Math.ceil(to_ms / 1000));
  const page = await readPage(account, "/v1/balance_transactions", time, after, signal);
  if (isUnknown(page)) throw new Error(`Stripe gives no list of movements: ${page.unknown}`);
  for (const object of page.objects) {
    const moved = expandedOf(BalanceTransaction, object);
    if (moved === null) throw new Error("Stripe lists a movement that this connector cannot read");
    const currency = normalizeCurrency(moved.currency);
    sums[currency] = (sums[currency] ?? 0) + moved.net;
  }
  if (page.after !== null) return { cursor: { begun, after: page.after, sums } };
  const totals = Object.entries(sums).sort(([a], [b]) => a < b ? -1 : 1)
    .map(([currency, sum]) => ({ currency, net_minor: nearestAmount(sum, currency) }));
  return { totals };
}

function readCursor(cursor: unknown, now: number): z.infer<typeof Cursor> {
  const first = { begun: now, after: null, sums: {} };
  if (cursor === null) return first;
  const read = expandedOf(Cursor, cursor);
  if (read === null) throw new Error("The cursor of the totals is not one of stripe");
  return now - read.begun > READING_SECONDS_MAX ? first : read;
}
