/** Books without addresses and payouts. */

import type { ChainBooks } from "../../../shared/domain/providers/connector.ts";

function nothing(): never {
  throw new Error("these books have no payouts");
}

export const noBooks: ChainBooks = {
  deposits: () => Promise.resolve([]),
  openPayouts: () => Promise.resolve([]),
  takenTransfers: () => Promise.resolve([]),
  paidPayouts: () => Promise.resolve([]),
  payout: nothing,
  nonce: nothing,
  sending: nothing,
  sent: nothing,
};
