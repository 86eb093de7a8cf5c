/**
 * Transfers: money out of the available balance (contract §3).
 */

import { type List, listOf, type ListParams } from "./list.ts";
import type { ReadOptions, RequestOptions } from "./request_options.ts";
import type { Transport } from "./transport.ts";
import type {
  AmountInput,
  DeletedBankDetails,
  IbanInput,
  MaskedIban,
  Metadata,
  PostalAddress,
  Wallet,
  WalletInput,
} from "./values.ts";
import type { FailureCode, PayeeCheck, Settlement, Speed, TransferStatus } from "./vocabulary.ts";

/** Fields of a new transfer. */
export interface TransferFields {
  /** ISO 4217 code, `USDC` or `USDT`. */
  currency: string;
  /** Either `iban` or `wallet`. The other members are for an `iban`. */
  destination: {
    iban?: string | IbanInput | undefined;
    /** The payee, whose name the bank verifies. Required with a live key. */
    holder_name?: string | undefined;
    /** 8 or 11 characters. */
    bic?: string | undefined;
    /** Required for an IBAN from outside the EEA. */
    address?: PostalAddress | undefined;
    wallet?: string | WalletInput | undefined;
  };
  /** `instant` asks for SEPA Instant: only for EUR to an IBAN. By default `standard`. */
  speed?: Speed | undefined;
  /** At most 500 characters. */
  description?: string | undefined;
  metadata?: Metadata | undefined;
  /** Test keys only. `manual` leaves the transfer `pending` until you advance or cancel it. */
  settlement?: Settlement | undefined;
}

/** `POST /v1/transfers`. Amounts are integers in minor units: 1050 is 10.50 EUR. */
export type CreateTransferInput = TransferFields & AmountInput;

/** The destination of the money, with a masked IBAN. */
export type TransferDestination =
  | { type: "iban"; iban: MaskedIban }
  | { type: "wallet"; wallet: Wallet };

/** A transfer. Times are RFC 3339 in UTC. */
export interface Transfer {
  /** `tr_…` */
  id: string;
  object: "transfer";
  status: TransferStatus;
  /** Minor units of the currency. */
  amount: number;
  /** The amount in minor units again, under the name `amount_minor`. */
  amount_minor: number;
  currency: string;
  destination: TransferDestination;
  /** Null for a wallet. */
  speed: Speed | null;
  /**
   * Null if the bank has told none. With `close_match`, `no_match` and `unavailable` the transfer stays
   * `pending` until an operator approves it. `pending`: the bank has not finished.
   */
  payee_check: PayeeCheck | null;
  description: string | null;
  metadata: Metadata;
  /** The reason if the transfer failed. */
  failure_code: FailureCode | null;
  failure_message: string | null;
  /** The reason of the bank if it returned the money, such as `AC04`. */
  return_code: string | null;
  livemode: boolean;
  /** Number of events of this transfer. */
  sequence: number;
  created_at: string;
  updated_at: string;
  completed_at: string | null;
  cancelled_at: string | null;
}

/** `GET /v1/transfers` */
export interface ListTransfersParams extends ListParams {
  status?: TransferStatus | undefined;
  currency?: string | undefined;
  /** A text in the description. */
  search?: string | undefined;
  /** RFC 3339, exclusive. */
  created_after?: string | undefined;
  /** RFC 3339, exclusive. */
  created_before?: string | undefined;
}

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
