/** The ledger and the balance (contract §3). */

import { type List, listOf } from "./list.ts";
import type { ReadOptions } from "./request_options.ts";
import type { Transport } from "./transport.ts";
import type { Balance, LedgerEntry, ListLedgerEntriesParams } from "./resources.ts";

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
