/**
 * The ledger and what it adds up to (contract §3).
 */

import { type List, listOf, type ListParams } from "./list.ts";
import type { ReadOptions } from "./request_options.ts";
import type { Transport } from "./transport.ts";
import type { LedgerAccount } from "./vocabulary.ts";

/** One side of a ledger transaction. Never changes. */
export interface LedgerEntry {
  /** `le_…` */
  id: string;
  object: "ledger_entry";
  /** `txn_…`; the debits and credits of one are equal. */
  transaction_id: string;
  account: LedgerAccount;
  direction: "debit" | "credit";
  amount_minor: number;
  currency: string;
  payment_id: string | null;
  refund_id: string | null;
  transfer_id: string | null;
  created_at: string;
}

/** `GET /v1/ledger_entries` */
export interface ListLedgerEntriesParams extends ListParams {
  /** Not together with `transfer_id`. */
  payment_id?: string | undefined;
  transfer_id?: string | undefined;
  transaction_id?: string | undefined;
  account?: LedgerAccount | undefined;
}

/**
 * `GET /v1/balance`: the sums of each account of each currency. The service's sums are exact. The
 * client parses them as JavaScript numbers, which rounds sums above `Number.MAX_SAFE_INTEGER`.
 */
export interface Balance {
  object: "balance";
  livemode: boolean;
  balances: {
    currency: string;
    account: LedgerAccount;
    debits_minor: number;
    credits_minor: number;
    /** Credits less debits: of `available`, what can be transferred. */
    amount_minor: number;
  }[];
}

/** The ledger. Throws a `PaymentsError`. */
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

/** The balance. Throws a `PaymentsError`. */
export class Balances {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Gets the balance. */
  retrieve(options?: ReadOptions): Promise<Balance> {
    return this.#transport.send({ method: "GET", path: ["/api-v1-payments/v1/balance"] }, options);
  }
}
