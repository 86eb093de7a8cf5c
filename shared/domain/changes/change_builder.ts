/**
 * Builds a change of one payment or transfer, for `pay.commit`. Each event raises the `sequence` of
 * the resource by one and contains the resource as of that event. Money moves only through ledger
 * movements from one account to another. Pure.
 */

import { formatTime } from "../../core/clock.ts";
import type { LedgerAccount } from "../../schema/ledger.ts";
import type { EventType, EventTypeOf } from "../../schema/event_type.ts";
import type { Payment } from "../../schema/payment.ts";
import type { Refund } from "../../schema/refund.ts";
import type { Transfer } from "../../schema/transfer.ts";
import type {
  Answer,
  Change,
  MovementKind,
  PaymentRow,
  TransferRow,
} from "../../store/commit_rows.ts";
import { eventRow, type RequestContext } from "./event.ts";

/** A resource with a lifecycle, events and ledger movements. */
export type Subject = Payment | Transfer;

/** A change of a payment. */
export type PaymentChange = ChangeBuilder<Payment>;
/** A change of a transfer. */
export type TransferChange = ChangeBuilder<Transfer>;

/** Ids to reserve after a transaction's id for the entries of a leg (`pay.ledger_entry_id`). */
const ENTRIES_PER_LEG = 2;

/** The debited and the credited account of each kind of movement (contract §3). */
const MOVEMENTS: Record<MovementKind, { debit: LedgerAccount; credit: LedgerAccount }> = {
  capture: { debit: "processor", credit: "available" },
  capture_reversal: { debit: "available", credit: "processor" },
  refund: { debit: "available", credit: "processor" },
  chargeback: { debit: "available", credit: "chargebacks" },
  transfer: { debit: "available", credit: "in_transit" },
  transfer_completed: { debit: "in_transit", credit: "external" },
  transfer_reversed: { debit: "in_transit", credit: "available" },
};

/** Collects the events, refunds and movements of a resource within one request. */
export class ChangeBuilder<T extends Subject> {
  readonly #refunds: Change["refunds"] = [];
  readonly #ledger: Change["ledger"] = [];
  readonly #events: Change["events"] = [];
  readonly #expects: Change["expects"];
  readonly #at: string;
  #subject: T;
  #body = "";

  /**
   * @param subject the loaded resource, or a new one with sequence 0
   * @param context the request; its time is the time of all rows and events
   */
  constructor(subject: T, readonly context: RequestContext) {
    this.#subject = subject;
    this.#at = formatTime(context.at_ms);
    this.#expects = subject.sequence === 0 ? null : standingOf(subject);
  }

  /** The resource with all changes so far. */
  get subject(): T {
    return this.#subject;
  }

  /** The resource as of its newest event, as JSON text. */
  get body(): string {
    return this.#body;
  }

  /** The time of the change, RFC 3339. */
  get at(): string {
    return this.#at;
  }

  /** Applies a patch to the resource and records one event of this type. */
  addEvent(type: EventTypeOf<T["object"]>, patch: Partial<T> = {}): void {
    this.#subject = {
      ...this.#subject,
      ...patch,
      sequence: this.#subject.sequence + 1,
      updated_at: this.#at,
    };
    this.#body = JSON.stringify(this.#subject);
    this.#record(type, this.#body);
  }

  /** Records a refund, its ledger movement and its event. Returns the refund as JSON text. */
  refund(refund: Refund): string {
    const body = JSON.stringify(refund);
    const { id, payment_id, amount_minor, currency } = refund;
    this.#refunds.push({ id, payment_id, amount_minor, currency, created_at: this.#at, body });
    this.move("refund", amount_minor, id);
    this.#subject = { ...this.#subject, sequence: this.#subject.sequence + 1 };
    this.#record("refund.completed", body);
    return body;
  }

  /** Records a ledger movement, in minor units of the resource's currency. */
  move(kind: MovementKind, amount_minor: number, refund_id: string | null = null): void {
    const { debit, credit } = MOVEMENTS[kind];
    this.#ledger.push({
      transaction_id: this.context.mint("txn_", ENTRIES_PER_LEG),
      leg: 0,
      kind,
      subject_id: this.#subject.id,
      refund_id,
      debit_account: debit,
      credit_account: credit,
      amount_minor,
      currency: this.#subject.currency,
      created_at: this.#at,
    });
  }

  /** Returns the finished change with its answer. */
  finish(answer: Answer): Change {
    const subject = this.#subject;
    return {
      answer,
      expects: this.#expects,
      payment: subject.object === "payment" ? paymentRow(subject, this.#body) : null,
      transfer: subject.object === "transfer" ? transferRow(subject, this.#body) : null,
      refunds: this.#refunds,
      ledger: this.#ledger,
      events: this.#events,
      calls: [],
    };
  }

  #record(type: EventType, object: string): void {
    const { id: subject_id, sequence } = this.#subject;
    this.#events.push(eventRow({ type, subject_id, sequence, object }, this.context));
  }
}

/** Makes a change that only stores an answer, provided that the resource has not changed since. */
export function answerOnly(subject: Subject | null, answer: Answer): Change {
  return {
    answer,
    expects: subject && standingOf(subject),
    payment: null,
    transfer: null,
    refunds: [],
    ledger: [],
    events: [],
    calls: [],
  };
}

function standingOf({ id, sequence }: Subject): Change["expects"] {
  return { id, sequence };
}

function paymentRow(payment: Payment, body: string): PaymentRow {
  return {
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
    body,
  };
}

function transferRow(transfer: Transfer, body: string): TransferRow {
  const { id, status, amount_minor, currency, sequence, created_at, updated_at } = transfer;
  return { id, status, amount_minor, currency, sequence, created_at, updated_at, body };
}
