/** Transfers: money out of the available balance (contract §3). */

import { type List, listOf } from "./list.ts";
import type { ReadOptions, RequestOptions } from "./request_options.ts";
import type { Transport } from "./transport.ts";
import type {
  CreateTransferInput,
  DeletedBankDetails,
  ListTransfersParams,
  Transfer,
} from "./resources.ts";

const TRANSFERS = "/api-v1-payments/v1/transfers";

/** Operations on transfers. A failed one throws a `PaymentsError`. */
export class Transfers {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Creates a transfer. If the available balance is too low: 402 `balance_insufficient`. */
  create(input: CreateTransferInput, options?: RequestOptions): Promise<Transfer> {
    return this.#transport.send({ method: "POST", path: [TRANSFERS], body: input }, options);
  }

  /** Retrieves a transfer. */
  retrieve(id: string, options?: ReadOptions): Promise<Transfer> {
    return this.#transport.send({ method: "GET", path: [TRANSFERS, id] }, options);
  }

  /** Lists transfers, newest first. */
  list(params?: ListTransfersParams, options?: ReadOptions): List<Transfer> {
    return listOf(this.#transport, [TRANSFERS], params, options);
  }

  /** Cancels a `pending` transfer. In another status: 409 `invalid_state`. */
  cancel(id: string, options?: RequestOptions): Promise<Transfer> {
    const path = [TRANSFERS, id, "cancel"];
    return this.#transport.send({ method: "POST", path }, options);
  }

  /**
   * Deletes the whole bank details that the API keeps for a transfer. While the transfer is
   * `pending`: 409 `invalid_state`.
   */
  deleteBankDetails(id: string, options?: RequestOptions): Promise<DeletedBankDetails> {
    const path = [TRANSFERS, id, "bank_details"];
    return this.#transport.send({ method: "DELETE", path }, options);
  }
}
