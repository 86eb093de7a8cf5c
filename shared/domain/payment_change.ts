/**
 * A change of one payment under construction: each event moves the payment one `sequence` on and is
 * written with the payment as of that event; money moves only through ledger transactions of two
 * equal sides. Pure; the result is what `pay.commit` writes.
 */

import { formatTime } from "../core/clock.ts";
import { eventRow, type RequestContext } from "./event.ts";
import type { LedgerAccount } from "../schema/ledger.ts";
import type { Payment } from "../schema/payment.ts";
import type { Refund } from "../schema/refund.ts";
import type { Answer, Change, MovementKind } from "../store/change.ts";

/** Which account each kind of movement debits, and which it credits (contract §3). */
const MOVEMENTS: Record<MovementKind, { debit: LedgerAccount; credit: LedgerAccount }> = {
  capture: { debit: "processor", credit: "available" },
  capture_reversal: { debit: "available", credit: "processor" },
  refund: { debit: "available", credit: "processor" },
  chargeback: { debit: "available", credit: "chargebacks" },
};

/** Collects what happens to a payment within one request. */
export class PaymentChange {
  readonly #refunds: Change["refunds"] = [];
  readonly #ledger: Change["ledger"] = [];
  readonly #events: Change["events"] = [];
  readonly #expects: Change["expects"];
  readonly #at: string;
  #payment: Payment;
  #body = "";

  /**
   * @param payment as loaded, or a new one at sequence 0
   * @param context the request; its instant stamps everything
   */
  constructor(payment: Payment, readonly context: RequestContext) {
    this.#payment = payment;
    this.#at = formatTime(context.at_ms);
    this.#expects = payment.sequence === 0
      ? null
      : { payment_id: payment.id, sequence: payment.sequence };
  }

  /** The payment as it stands within the change. */
  get payment(): Payment {
    return this.#payment;
  }

  /** The payment as JSON text, as of its newest event. */
  get body(): string {
    return this.#body;
  }

  /** The instant of the change, RFC 3339. */
  get at(): string {
    return this.#at;
  }

  /** The payment changes: one event, named `payment.<name>`. */
  happen(name: string, patch: Partial<Payment> = {}): void {
    this.#payment = {
      ...this.#payment,
      ...patch,
      sequence: this.#payment.sequence + 1,
      updated_at: this.#at,
    };
    this.#body = JSON.stringify(this.#payment);
    this.#record(`payment.${name}`, this.#body);
  }

  /** Money is given back: the refund, its ledger transaction and its event. */
  refund(refund: Refund): string {
    const body = JSON.stringify(refund);
    const { id, payment_id, amount_minor, currency } = refund;
    this.#refunds.push({ id, payment_id, amount_minor, currency, created_at: this.#at, body });
    this.move("refund", amount_minor, id);
    this.#payment = { ...this.#payment, sequence: this.#payment.sequence + 1 };
    this.#record("refund.completed", body);
    return body;
  }

  /** Money moves between two accounts of the ledger; minor units of the payment's currency. */
  move(kind: MovementKind, amount_minor: number, refund_id: string | null = null): void {
    const { mint } = this.context;
    const { debit, credit } = MOVEMENTS[kind];
    this.#ledger.push({
      id: mint("txn_"),
      kind,
      subject_id: this.#payment.id,
      refund_id,
      debit_id: mint("le_"),
      debit_account: debit,
      credit_id: mint("le_"),
      credit_account: credit,
      amount_minor,
      currency: this.#payment.currency,
      created_at: this.#at,
    });
  }

  /** The change, to be answered in this way. */
  finish(answer: Answer): Change {
    const payment = this.#payment;
    return {
      answer,
      expects: this.#expects,
      payment: {
        id: payment.id,
        status: payment.status,
        amount_minor: payment.amount_minor,
        amount_refunded: payment.amount_refunded,
        currency: payment.currency,
        method_kind: payment.method_kind,
        reference: payment.reference,
        sequence: payment.sequence,
        created_at: payment.created_at,
        updated_at: payment.updated_at,
        body: this.#body,
      },
      refunds: this.#refunds,
      ledger: this.#ledger,
      events: this.#events,
    };
  }

  #record(type: string, object: string): void {
    const { id: subject_id, sequence } = this.#payment;
    this.#events.push(eventRow({ type, subject_id, sequence, object }, this.context));
  }
}

/** A change that moves nothing and only keeps an answer, if the payment is still as it was. */
export function answerOnly(payment: Payment, answer: Answer): Change {
  return {
    answer,
    expects: { payment_id: payment.id, sequence: payment.sequence },
    payment: null,
    refunds: [],
    ledger: [],
    events: [],
  };
}
