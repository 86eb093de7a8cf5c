/**
 * Payments and their refunds (contract §2 and §3).
 */

import { type List, listOf, type ListParams } from "./list.ts";
import type { Payment } from "./payment.ts";
import type { ReadOptions, RequestOptions } from "./request_options.ts";
import type { Transport } from "./transport.ts";
import type {
  AmountInput,
  DeletedBankDetails,
  IbanInput,
  Mandate,
  MaskedIban,
  Metadata,
  Person,
  PostalAddress,
  WalletInput,
} from "./values.ts";
import type {
  Capability,
  CaptureMethod,
  FailureCode,
  MethodKind,
  Outcome,
  PayeeCheck,
  PaymentStatus,
  RefundReason,
  RefundStatus,
  Settlement,
  Speed,
} from "./vocabulary.ts";

/** A card by its number. Test keys only, and only the published test cards. */
export interface CardNumberInput {
  /** Can contain spaces and dashes. */
  number: string;
  exp_month: number;
  exp_year: number;
  cvc: string;
  postal_code?: string | undefined;
}

/** A card by its token. */
export interface CardTokenInput {
  /** `pm_…`, which the provider's form in the browser makes. Test keys take the test tokens. */
  token: string;
}

/** A card: its token, or with a test key the number of a test card. */
export type CardInput = CardNumberInput | CardTokenInput;

/** Fields of a new payment. Without `card`, `iban`, `wallet` and `outcome` it stays `pending`. */
export interface PaymentFields {
  /** ISO 4217 code, `USDC` or `USDT`. */
  currency: string;
  /** By default derived from `card`, `iban` or `wallet`; without any of them `card_payment`. */
  capability?: Capability | undefined;
  /** Another name for `capability`, with shorter values: send one of the two. */
  method_kind?: MethodKind | undefined;
  customer?: Person | undefined;
  /** Another name for `customer`: send one of the two. */
  payer?: Person | undefined;
  card?: CardInput | undefined;
  iban?: string | IbanInput | undefined;
  /** For a payment by SEPA with an `iban`: it is collected on `method.due_on`. */
  mandate?: Mandate | undefined;
  wallet?: string | WalletInput | undefined;
  /** At most 500 characters. */
  description?: string | undefined;
  /** Your own reference, at most 255 characters. Payments can be listed by it. */
  reference?: string | undefined;
  metadata?: Metadata | undefined;
  /** `manual` only authorizes the amount: call `capture` within 7 days. Cards only. */
  capture?: CaptureMethod | undefined;
  /**
   * The page of your shop to which the payer comes back after `next_action`, with the parameter
   * `payment_id` added: https, or with a test key also http on localhost.
   */
  return_url?: string | undefined;
  /** Test keys only. Overrides the result of the card, IBAN or wallet. */
  outcome?: Outcome | undefined;
  /**
   * Test keys only. `manual` leaves a bank or wallet payment, and the refunds of every payment,
   * `pending` until you advance them.
   */
  settlement?: Settlement | undefined;
}

/** `POST /v1/payments`. Amounts are integers in minor units: 1050 is 10.50 EUR. */
export type CreatePaymentInput = PaymentFields & AmountInput;

/** `GET /v1/payments` */
export interface ListPaymentsParams extends ListParams {
  status?: PaymentStatus | undefined;
  currency?: string | undefined;
  method_kind?: MethodKind | undefined;
  reference?: string | undefined;
  /** The e-mail address of the customer, exactly as the payment has it. */
  customer?: string | undefined;
  /** Your own id of the customer. */
  customer_id?: string | undefined;
  /** A text in the reference, the description, or the e-mail address or name of the customer. */
  search?: string | undefined;
  /** RFC 3339, exclusive. */
  created_after?: string | undefined;
  /** RFC 3339, exclusive. */
  created_before?: string | undefined;
}

/** `POST /v1/payments/{id}/capture`. Without an amount the API captures the whole amount. */
export interface CapturePaymentInput {
  /** Minor units. */
  amount?: number | undefined;
  /** Another name for `amount`: send one of the two. */
  amount_minor?: number | undefined;
}

/** `POST /v1/payments/{id}/refund`. Without an amount the API refunds the rest of the payment. */
export interface CreateRefundInput {
  /** Minor units. */
  amount?: number | undefined;
  /** Another name for `amount`: send one of the two. */
  amount_minor?: number | undefined;
  reason?: RefundReason | undefined;
  metadata?: Metadata | undefined;
  /**
   * Where the refund goes. A payment that was sent to an address needs the payer's wallet. A refund
   * by SEPA or SWIFT goes to the payer's account without it.
   */
  destination?: RefundDestinationInput | undefined;
  /** `instant` asks for SEPA Instant: only for payments by SEPA. By default `standard`. */
  speed?: Speed | undefined;
}

/** The wallet or bank account to which a refund goes. */
export interface RefundDestinationInput {
  /**
   * For payments by stablecoin the payer's wallet; never use the payment's sender. For a bank account
   * the postal address of the payee, which an IBAN from outside the EEA needs.
   */
  address?: string | PostalAddress | undefined;
  iban?: string | IbanInput | undefined;
  /** The payee, whose name the bank verifies. Required with a live key. */
  holder_name?: string | undefined;
  /** 8 or 11 characters. */
  bic?: string | undefined;
}

/** The wallet or the masked bank account to which a refund goes. */
export type RefundDestination = { address: string } | { iban: MaskedIban };

/** A refund. */
export interface Refund {
  /** `re_…` */
  id: string;
  object: "refund";
  payment_id: string;
  /** Status of the payment as of the refund's last event. */
  payment_status: PaymentStatus;
  /** Minor units of the currency. */
  amount: number;
  /** The amount in minor units again, under the name `amount_minor`. */
  amount_minor: number;
  currency: string;
  status: RefundStatus;
  /** The reason if the refund failed. */
  failure_code: FailureCode | null;
  failure_message: string | null;
  /** The bank's code of a return, such as `AC04`. */
  return_code: string | null;
  reason: RefundReason | null;
  metadata: Metadata;
  /** Null if the request named nothing. */
  destination: RefundDestination | null;
  /** Null if no bank pays it out. */
  speed: Speed | null;
  /**
   * Null if the bank has told none. With `close_match`, `no_match` and `unavailable` the refund stays
   * `pending` until an operator approves it. `pending`: the bank has not finished.
   */
  payee_check: PayeeCheck | null;
  livemode: boolean;
  created_at: string;
  updated_at: string;
}

/** `GET /v1/refunds` */
export interface ListRefundsParams extends ListParams {
  payment_id?: string | undefined;
  status?: RefundStatus | undefined;
}

const PAYMENTS = "/api-v1-payments/v1/payments";
const REFUNDS = "/api-v1-payments/v1/refunds";

/** Operations on payments. A failed one throws a `PaymentsError`. */
export class Payments {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Creates a payment. If it is declined, the call throws an `ApiError` with status 402, the
   * stored `payment` and `advice`. Other results, also `failed`, are returned as the status of the payment.
   */
  create(input: CreatePaymentInput, options?: RequestOptions): Promise<Payment> {
    return this.#transport.send({ method: "POST", path: [PAYMENTS], body: input }, options);
  }

  /** Retrieves a payment. */
  retrieve(id: string, options?: ReadOptions): Promise<Payment> {
    return this.#transport.send({ method: "GET", path: [PAYMENTS, id] }, options);
  }

  /** Lists payments, newest first. */
  list(params?: ListPaymentsParams, options?: ReadOptions): List<Payment> {
    return listOf(this.#transport, [PAYMENTS], params, options);
  }

  /** Captures an `authorized` payment once, the whole amount or less. The rest is released. */
  capture(
    id: string,
    input: CapturePaymentInput = {},
    options?: RequestOptions,
  ): Promise<Payment> {
    const path = [PAYMENTS, id, "capture"];
    return this.#transport.send({ method: "POST", path, body: input }, options);
  }

  /**
   * Cancels a payment whose money has not moved, and releases an authorization. In another status:
   * 409 `invalid_state`.
   */
  cancel(id: string, options?: RequestOptions): Promise<Payment> {
    const path = [PAYMENTS, id, "cancel"];
    return this.#transport.send({ method: "POST", path }, options);
  }

  /**
   * Refunds a part of a payment, or the rest of it. A `pending` refund is on its way: the events
   * `refund.completed` and `refund.failed` show its result.
   */
  refund(id: string, input: CreateRefundInput = {}, options?: RequestOptions): Promise<Refund> {
    const path = [PAYMENTS, id, "refund"];
    return this.#transport.send({ method: "POST", path, body: input }, options);
  }

  /**
   * Deletes the whole bank details that the API keeps for a payment and its refunds. A later refund
   * by bank must name its `destination`. While one has no result: 409 `invalid_state`.
   */
  deleteBankDetails(id: string, options?: RequestOptions): Promise<DeletedBankDetails> {
    return this.#transport.send(
      { method: "DELETE", path: [PAYMENTS, id, "bank_details"] },
      options,
    );
  }

  /** Lists the refunds of a payment, newest first. */
  listRefunds(id: string, params?: ListParams, options?: ReadOptions): List<Refund> {
    return listOf(this.#transport, [PAYMENTS, id, "refunds"], params, options);
  }
}

/**
 * Operations on the refunds of all payments. A failed one throws a `PaymentsError`.
 * `payments.refund` creates refunds.
 */
export class Refunds {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Retrieves a refund. */
  retrieve(id: string, options?: ReadOptions): Promise<Refund> {
    return this.#transport.send({ method: "GET", path: [REFUNDS, id] }, options);
  }

  /** Lists refunds, newest first. */
  list(params?: ListRefundsParams, options?: ReadOptions): List<Refund> {
    return listOf(this.#transport, [REFUNDS], params, options);
  }
}
