/** Subtracts the payouts of a day from its totals, after checking each of them on the chain. */

import type { ProviderAccount } from "../../domain/providers/connector.ts";
import type { PaidPayout } from "../../store/chain_store.ts";
import { PayoutChain } from "./evm_payout_chain.ts";
import type { EvmSettings } from "./evm_settings.ts";

/**
 * Subtracts the payouts that the chain has. A payout that it does not have becomes a difference.
 * @param sums by currency, changed in place
 */
export async function payoutTotals(
  { secret }: ProviderAccount,
  settings: EvmSettings,
  payouts: readonly PaidPayout[],
  sums: Record<string, number>,
  signal: AbortSignal,
): Promise<void> {
  const { signer_address } = settings;
  if (signer_address === null || payouts.length === 0) return;
  const chain = new PayoutChain(settings, signer_address, secret, signal);
  const mined = await chain.mined(payouts.map(({ tx_hash }) => tx_hash));
  for (const { tx_hash, currency, amount_minor } of payouts) {
    if (mined.get(tx_hash)?.has_worked) sums[currency] = (sums[currency] ?? 0) - amount_minor;
  }
}
