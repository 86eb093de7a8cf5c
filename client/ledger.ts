/**
 * The ledger and the balance (contract §3).
 */

import { type List, listOf, type ListParams } from "./list.ts";
import type { ReadOptions } from "./request_options.ts";
import type { Transport } from "./transport.ts";
import type { LedgerAccount } from "./vocabulary.ts";

/** One side of a ledger transaction. An entry never changes. */
export interface LedgerEntry {
  /** `le_…` */
  id: string;
  object: "ledger_entry";
  /** `txn_…`. The debits and credits of a transaction are equal. */
  transaction_id: string;
  account: LedgerAccount;
  direction: "debit" | "credit";
  /** Minor units of the currency. */
  amount_minor: number;
  currency: string;
  payment_id: string | null;
  refund_id: string | null;
  transfer_id: string | null;
  created_at: string;
}

/** `GET /v1/ledger_entries` */
export interface ListLedgerEntriesParams extends ListParams {
  /** Cannot be combined with `transfer_id`. */
  payment_id?: string | undefined;
  transfer_id?: string | undefined;
  transaction_id?: string | undefined;
  account?: LedgerAccount | undefined;
  currency?: string | undefined;
}

/**
 * `GET /v1/balance`: the sums of each account in each currency, in minor units. The API returns
 * exact sums. As JavaScript numbers, sums above `Number.MAX_SAFE_INTEGER` are rounded.
 */
export interface Balance {
  object: "balance";
  livemode: boolean;
  balances: {
    currency: string;
    account: LedgerAccount;
    debits_minor: number;
    credits_minor: number;
    /** Credits less debits. For the account `available` this amount can be transferred. */
    amount_minor: number;
  }[];
}

/** Operations on the ledger. A failed one throws a `PaymentsError`. */
export class LedgerEntries {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Lists ledger entries, newest first. */
  list(params?: ListLedgerEntriesParams, options?: ReadOptions): List<LedgerEntry> {
    return listOf(this.#transport, ["/api-v1-payments/v1/ledger_entries"], params, options);
  }
}

/** Operations on the balance. A failed one throws a `PaymentsError`. */
export class Balances {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Retrieves the balance. */
  retrieve(options?: ReadOptions): Promise<Balance> {
    return this.#transport.send({ method: "GET", path: ["/api-v1-payments/v1/balance"] }, options);
  }
}
