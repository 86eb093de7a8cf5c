/** A store of chains over a database without addresses and payouts. */

import { ChainStore } from "../../../shared/store/chain_store.ts";

export const NO_CHAIN = noChain();

/** Makes such a store. */
export function noChain(): ChainStore {
  return new ChainStore({ query: () => Promise.resolve([]) });
}
