/** A store of chains without addresses and payouts. */

import type { ChainStore } from "../../../shared/store/chain_store.ts";

function nothing(): never {
  throw new Error("this store has no payouts");
}

export const NO_CHAIN: ChainStore = {
  watchedDeposits: () => Promise.resolve([]),
  openPayouts: () => Promise.resolve([]),
  takenTransfers: () => Promise.resolve([]),
  paidPayouts: () => Promise.resolve([]),
  storePayout: nothing,
  assignNonce: nothing,
  storePayoutFees: nothing,
  storePayoutHash: nothing,
};
