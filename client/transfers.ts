/**
 * Transfers: money out of the available balance (contract §3).
 */

import { type List, listOf, type ListParams } from "./list.ts";
import type { ReadOptions, RequestOptions } from "./request_options.ts";
import type { Transport } from "./transport.ts";
import type {
  AmountInput,
  IbanInput,
  MaskedIban,
  Metadata,
  Wallet,
  WalletInput,
} from "./values.ts";
import type { FailureCode, Settlement, TransferStatus } from "./vocabulary.ts";

/** What a transfer is made of. */
export interface TransferFields {
  /** ISO 4217 code, `USDC` or `USDT`. */
  currency: string;
  /** One of the two. */
  destination: {
    iban?: string | IbanInput | undefined;
    wallet?: string | WalletInput | undefined;
  };
  /** At most 500 characters. */
  description?: string | undefined;
  metadata?: Metadata | undefined;
  /** Test keys only: `manual` leaves it `pending` until it is advanced or cancelled. */
  settlement?: Settlement | undefined;
}

/** `POST /v1/transfers`: amounts are integers in minor units. */
export type CreateTransferInput = TransferFields & AmountInput;

/** Where the money goes, as far as it is shown. */
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
  /** The same as `amount`. */
  amount_minor: number;
  currency: string;
  destination: TransferDestination;
  description: string | null;
  metadata: Metadata;
  /** Why it failed. */
  failure_code: FailureCode | null;
  failure_message: string | null;
  /** A bank's reason for sending money back, for example `R01`. */
  return_code: string | null;
  livemode: boolean;
  /** Counts the events of this transfer. */
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
  /** RFC 3339, exclusive. */
  created_after?: string | undefined;
  /** RFC 3339, exclusive. */
  created_before?: string | undefined;
}

const TRANSFERS = "/api-v1-payments/v1/transfers";

/** Operations on transfers. Each throws a `PaymentsError`. */
export class Transfers {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Moves money out. More than is available: 402 `balance_insufficient`. */
  create(input: CreateTransferInput, options?: RequestOptions): Promise<Transfer> {
    return this.#transport.send({ method: "POST", path: [TRANSFERS], body: input }, options);
  }

  /** Gets a transfer. */
  retrieve(id: string, options?: ReadOptions): Promise<Transfer> {
    return this.#transport.send({ method: "GET", path: [TRANSFERS, id] }, options);
  }

  /** Lists transfers, newest first. */
  list(params?: ListTransfersParams, options?: ReadOptions): List<Transfer> {
    return listOf(this.#transport, [TRANSFERS], params, options);
  }

  /** Cancels a transfer that is `pending`; else 409 `invalid_state`. */
  cancel(id: string, options?: RequestOptions): Promise<Transfer> {
    const path = [TRANSFERS, id, "cancel"];
    return this.#transport.send({ method: "POST", path }, options);
  }
}
