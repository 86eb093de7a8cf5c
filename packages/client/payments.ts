/** Payments and their refunds (contract §2 and §3). */

import { type List, listOf, type Page } from "./list.ts";
import type { ReadOptions, RequestOptions } from "./request_options.ts";
import { Collection } from "./resource.ts";
import type {
  CapturePaymentInput,
  CreatePaymentInput,
  CreateRefundInput,
  DeletedBankDetails,
  ListParams,
  ListPaymentsParams,
  ListRefundsParams,
  Payment,
  PaymentTotal,
  PaymentTotalsParams,
  Refund,
} from "./resources.ts";

/** The fields of totals that are added up. */
const SUMS = ["count", "amount_minor", "amount_captured", "amount_refunded"] as const;

/** Operations on payments. A failed one throws a `PaymentsError`. */
export class Payments extends Collection<Payment, ListPaymentsParams> {
  protected readonly path = "/api-v1-payments/v1/payments";

  /**
   * Creates a payment. If it is declined, the call throws an `ApiError` with status 402, the
   * stored `payment` and `advice`. Other results, also `failed`, are returned as the status of the
   * payment.
   */
  create(input: CreatePaymentInput, options?: RequestOptions): Promise<Payment> {
    return this.transport.post([this.path], input, options);
  }

  /**
   * Returns counts and sums of payments by status and currency, and by span of time with `span`,
   * the newest span first. Sends a request for each 20 000 payments. Sums over 2^53 are rounded.
   */
  async totals(params?: PaymentTotalsParams, options?: ReadOptions): Promise<Page<PaymentTotal>> {
    const totals = new Map<string, PaymentTotal>();
    for (let starting_after = params?.starting_after;;) {
      const page = await this.transport.send<Page<PaymentTotal>>({
        method: "GET",
        path: [`${this.path}/totals`],
        query: { ...params, starting_after },
      }, options);
      for (const total of page.data) {
        const key = `${total.from} ${total.status} ${total.currency}`;
        const sum = totals.get(key);
        if (!sum) totals.set(key, total);
        else for (const field of SUMS) sum[field] += total[field];
      }
      if (page.next_cursor === null) return { ...page, data: [...totals.values()] };
      starting_after = page.next_cursor;
    }
  }

  /** Captures an `authorized` payment once, the whole amount or less. The rest is released. */
  capture(
    id: string,
    input: CapturePaymentInput = {},
    options?: RequestOptions,
  ): Promise<Payment> {
    return this.transport.post([this.path, id, "capture"], input, options);
  }

  /**
   * Cancels a payment whose money has not moved, and releases an authorization. In another status:
   * 409 `invalid_state`.
   */
  cancel(id: string, options?: RequestOptions): Promise<Payment> {
    return this.transport.post([this.path, id, "cancel"], undefined, options);
  }

  /**
   * Refunds a part of a payment, or the rest of it. A `pending` refund is on its way: the events
   * `refund.completed` and `refund.failed` show its result.
   */
  refund(id: string, input: CreateRefundInput = {}, options?: RequestOptions): Promise<Refund> {
    return this.transport.post([this.path, id, "refund"], input, options);
  }

  /**
   * Deletes the whole bank details that the API keeps for a payment and its refunds. A later refund
   * by bank must name its `destination`. While one has no result: 409 `invalid_state`.
   */
  deleteBankDetails(id: string, options?: RequestOptions): Promise<DeletedBankDetails> {
    return this.transport.delete([this.path, id, "bank_details"], options);
  }

  /** Lists the refunds of a payment, newest first. */
  listRefunds(id: string, params?: ListParams, options?: ReadOptions): List<Refund> {
    return listOf(this.transport, [this.path, id, "refunds"], params, options);
  }
}

/**
 * Operations on the refunds of all payments. A failed one throws a `PaymentsError`.
 * `payments.refund` creates refunds.
 */
export class Refunds extends Collection<Refund, ListRefundsParams> {
  protected readonly path = "/api-v1-payments/v1/refunds";
}
