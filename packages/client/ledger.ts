/** The ledger and the balance (contract §3). */

import { type List, listOf } from "./list.ts";
import type { ReadOptions } from "./request_options.ts";
import { Resource } from "./resource.ts";
import type { Balance, LedgerEntry, ListLedgerEntriesParams } from "./resources.ts";

/** Operations on the ledger. A failed one throws a `PaymentsError`. */
export class LedgerEntries extends Resource {
  /** Lists ledger entries, newest first. */
  list(params?: ListLedgerEntriesParams, options?: ReadOptions): List<LedgerEntry> {
    return listOf(this.transport, ["/api-v1-payments/v1/ledger_entries"], params, options);
  }
}

/** Operations on the balance. A failed one throws a `PaymentsError`. */
export class Balances extends Resource {
  /** Retrieves the balance. */
  retrieve(options?: ReadOptions): Promise<Balance> {
    return this.transport.get(["/api-v1-payments/v1/balance"], options);
  }
}
