/** Transfers: money out of the available balance (contract §3). */

import type { RequestOptions } from "./request_options.ts";
import { Collection } from "./resource.ts";
import type {
  CreateTransferInput,
  DeletedBankDetails,
  ListTransfersParams,
  Transfer,
} from "./resources.ts";

/** Operations on transfers. A failed one throws a `PaymentsError`. */
export class Transfers extends Collection<Transfer, ListTransfersParams> {
  protected readonly path = "/api-v1-payments/v1/transfers";

  /** Creates a transfer. If the available balance is too low: 402 `balance_insufficient`. */
  create(input: CreateTransferInput, options?: RequestOptions): Promise<Transfer> {
    return this.transport.post([this.path], input, options);
  }

  /** Cancels a `pending` transfer. In another status: 409 `invalid_state`. */
  cancel(id: string, options?: RequestOptions): Promise<Transfer> {
    return this.transport.post([this.path, id, "cancel"], undefined, options);
  }

  /**
   * Deletes the whole bank details that the API keeps for a transfer. While the transfer is
   * `pending`: 409 `invalid_state`.
   */
  deleteBankDetails(id: string, options?: RequestOptions): Promise<DeletedBankDetails> {
    return this.transport.delete([this.path, id, "bank_details"], options);
  }
}
