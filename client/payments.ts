/**
 * Payments and their refunds (contract §2 and §3).
 */

import { type List, listOf, type ListParams } from "./list.ts";
import type { Payment } from "./payment.ts";
import type { ReadOptions, RequestOptions } from "./request_options.ts";
import type { Transport } from "./transport.ts";
import type { AmountInput, IbanInput, Metadata, Person, WalletInput } from "./values.ts";
import type {
  Capability,
  MethodKind,
  Outcome,
  PaymentStatus,
  RefundReason,
  Settlement,
} from "./vocabulary.ts";

/** A card: in the sandbox one of the published test cards. */
export interface CardInput {
  /** Spaces and dashes do not matter. */
  number: string;
  exp_month: number;
  exp_year: number;
  cvc: string;
  postal_code?: string | undefined;
}

/** What a payment is made of. Without instrument and outcome it is `pending`. */
export interface PaymentFields {
  /** ISO 4217 code, `USDC` or `USDT`. */
  currency: string;
  /** Inferred from the instrument, else `card_payment`. */
  capability?: Capability | undefined;
  /** The same as `capability`, in other words. */
  method_kind?: MethodKind | undefined;
  customer?: Person | undefined;
  /** The same as `customer`. */
  payer?: Person | undefined;
  card?: CardInput | undefined;
  iban?: string | IbanInput | undefined;
  wallet?: string | WalletInput | undefined;
  /** At most 500 characters. */
  description?: string | undefined;
  /** Your own name for it, at most 255 characters; payments can be listed by it. */
  reference?: string | undefined;
  metadata?: Metadata | undefined;
  /** Test keys only; beats the instrument. */
  outcome?: Outcome | undefined;
  /** Test keys only: `manual` leaves a bank or wallet payment `pending` until it is advanced. */
  settlement?: Settlement | undefined;
}

/** `POST /v1/payments`: amounts are integers in minor units, 1050 is 10.50 EUR. */
export type CreatePaymentInput = PaymentFields & AmountInput;

/** `GET /v1/payments` */
export interface ListPaymentsParams extends ListParams {
  status?: PaymentStatus | undefined;
  currency?: string | undefined;
  method_kind?: MethodKind | undefined;
  reference?: string | undefined;
  /** RFC 3339, exclusive. */
  created_after?: string | undefined;
  /** RFC 3339, exclusive. */
  created_before?: string | undefined;
}

/** `POST /v1/payments/{id}/refund`: without an amount, the rest. */
export interface CreateRefundInput {
  /** Minor units. */
  amount?: number | undefined;
  /** The same as `amount`. */
  amount_minor?: number | undefined;
  reason?: RefundReason | undefined;
  metadata?: Metadata | undefined;
}

/** A refund. Never changes. */
export interface Refund {
  /** `re_…` */
  id: string;
  object: "refund";
  payment_id: string;
  /** Of the payment, after this refund. */
  payment_status: PaymentStatus;
  /** Minor units of the currency. */
  amount: number;
  /** The same as `amount`. */
  amount_minor: number;
  currency: string;
  status: "completed";
  reason: RefundReason | null;
  metadata: Metadata;
  livemode: boolean;
  created_at: string;
}

/** `GET /v1/refunds` */
export interface ListRefundsParams extends ListParams {
  payment_id?: string | undefined;
}

const PAYMENTS = "/api-v1-payments/v1/payments";
const REFUNDS = "/api-v1-payments/v1/refunds";

/** Operations on payments. Each throws a `PaymentsError`. */
export class Payments {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Creates a payment. A decline is an `ApiError` of status 402 with the stored `payment`; other
   * results, `failed` included, are the payment's status.
   */
  create(input: CreatePaymentInput, options?: RequestOptions): Promise<Payment> {
    return this.#transport.send({ method: "POST", path: [PAYMENTS], body: input }, options);
  }

  /** Gets a payment. */
  retrieve(id: string, options?: ReadOptions): Promise<Payment> {
    return this.#transport.send({ method: "GET", path: [PAYMENTS, id] }, options);
  }

  /** Lists payments, newest first. */
  list(params?: ListPaymentsParams, options?: ReadOptions): List<Payment> {
    return listOf(this.#transport, [PAYMENTS], params, options);
  }

  /** Cancels a payment for which no money has moved; else 409 `invalid_state`. */
  cancel(id: string, options?: RequestOptions): Promise<Payment> {
    const path = [PAYMENTS, id, "cancel"];
    return this.#transport.send({ method: "POST", path }, options);
  }

  /** Gives a part of a payment back, or the rest. */
  refund(id: string, input: CreateRefundInput = {}, options?: RequestOptions): Promise<Refund> {
    const path = [PAYMENTS, id, "refund"];
    return this.#transport.send({ method: "POST", path, body: input }, options);
  }

  /** Lists the refunds of a payment, newest first. */
  listRefunds(id: string, params?: ListParams, options?: ReadOptions): List<Refund> {
    return listOf(this.#transport, [PAYMENTS, id, "refunds"], params, options);
  }
}

/** Refunds of all payments; made by `payments.refund`. Each operation throws a `PaymentsError`. */
export class Refunds {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Gets a refund. */
  retrieve(id: string, options?: ReadOptions): Promise<Refund> {
    return this.#transport.send({ method: "GET", path: [REFUNDS, id] }, options);
  }

  /** Lists refunds, newest first. */
  list(params?: ListRefundsParams, options?: ReadOptions): List<Refund> {
    return listOf(this.#transport, [REFUNDS], params, options);
  }
}
