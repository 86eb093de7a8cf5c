/**
 * Builds a change of one payment or transfer, for `pay.commit` and `pay.record`. Each event raises
 * the `sequence` of the resource by one and contains the resource as of that event. Money moves
 * only through ledger movements from one account to another. Pure.
 */

import { formatTime } from "../../core/clock.ts";
import type { Sealed } from "../../core/vault.ts";
import type { Dispute } from "../../schema/dispute.ts";
import type { LedgerAccount } from "../../schema/list.ts";
import type { InstrumentStatus } from "../../schema/statuses.ts";
import type { EventType, EventTypeOf } from "../../schema/event_type.ts";
import type { Payment } from "../../schema/payment.ts";
import type { Refund } from "../../schema/refund.ts";
import type { Transfer } from "../../schema/transfer.ts";
import type {
  AttemptRow,
  Change,
  InstrumentRow,
  MovementKind,
  MovementRow,
  PaymentRow,
  StoredResponse,
  TransferRow,
} from "../../store/commit_rows.ts";
import type { InstrumentProvider } from "../../store/instrument_provider.ts";
import type { NewOperationRow } from "../../store/operation_row.ts";
import { methodOf } from "../rails.ts";
import { type EventContext, eventRow } from "./event.ts";
import { ResourceText } from "./resource_text.ts";
import { maskedMethod, statusOfSaved } from "./saved_instrument.ts";

/** A resource with a lifecycle, events and ledger movements. */
export type Subject = Payment | Transfer;

export type PaymentChange = ChangeBuilder<Payment>;
export type TransferChange = ChangeBuilder<Transfer>;
export type ResourceChange = PaymentChange | TransferChange;

/** An act of a change on an instrument, without its time and request. */
type InstrumentAct = DistributiveOmit<InstrumentRow, "at" | "request_id" | "idempotency_key">;
type DistributiveOmit<Row, Name extends PropertyKey> = Row extends unknown ? Omit<Row, Name>
  : never;

interface Attempt {
  /** The revision of the checkout on which it is based. */
  revision: number;
  /** Makes the response of a sandbox in place of the usual one; null: the usual one. */
  respond: ((payment: Payment, is_paid: boolean) => StoredResponse) | null;
}

/** Ids after that of a transaction for the entries of a leg (`pay_internal.ledger_entry_id`). */
const ENTRIES_PER_LEG = 2;

/** The debited and the credited account of each kind of movement (contract §3). */
const MOVEMENTS: Record<MovementKind, { debit: LedgerAccount; credit: LedgerAccount }> = {
  capture: { debit: "processor", credit: "available" },
  capture_reversal: { debit: "available", credit: "processor" },
  refund: { debit: "available", credit: "processor" },
  refund_reversal: { debit: "processor", credit: "available" },
  chargeback: { debit: "available", credit: "chargebacks" },
  chargeback_reversal: { debit: "chargebacks", credit: "available" },
  fee: { debit: "available", credit: "processor" },
  fee_reversal: { debit: "processor", credit: "available" },
  settlement: { debit: "bank", credit: "processor" },
  settlement_reversal: { debit: "processor", credit: "bank" },
  unmatched: { debit: "processor", credit: "unapplied" },
  unmatched_reversal: { debit: "unapplied", credit: "processor" },
  reserve: { debit: "reserve", credit: "processor" },
  reserve_reversal: { debit: "processor", credit: "reserve" },
  transfer: { debit: "available", credit: "in_transit" },
  transfer_completed: { debit: "in_transit", credit: "external" },
  transfer_reversed: { debit: "in_transit", credit: "available" },
  transfer_returned: { debit: "external", credit: "available" },
};

/** Collects the events, refunds, disputes and movements of a resource within one request. */
export class ChangeBuilder<T extends Subject> {
  readonly #refunds: Change["refunds"] = [];
  readonly #disputes: Change["disputes"] = [];
  readonly #ledger: Change["ledger"] = [];
  readonly #events: Change["events"] = [];
  readonly #operations: Change["operations"] = [];
  readonly #instruments: InstrumentRow[] = [];
  /** The status that the payment as loaded gives to the instrument that it saves. */
  readonly #saved_as: InstrumentStatus | null;
  #provider: InstrumentProvider | null = null;
  #attempt: Attempt | null = null;
  readonly #expects: Change["expects"];
  readonly #at: string;
  readonly #text: ResourceText;
  #subject: T;

  /**
   * @param subject the loaded resource, or a new one with sequence 0
   * @param context the origin; its time is the time of all rows and events
   */
  constructor(subject: T, readonly context: EventContext) {
    this.#subject = subject;
    this.#text = new ResourceText(subject.sequence === 0 ? null : subject);
    this.#at = formatTime(context.at_ms);
    this.#expects = subject.sequence === 0 ? null : standingOf(subject);
    this.#saved_as = subject.object === "payment" ? statusOfSaved(subject) : null;
  }

  get subject(): T {
    return this.#subject;
  }

  /** The resource as of its newest event, as JSON text; empty without one. */
  get body(): string {
    return this.#events.length === 0 ? "" : this.#text.text;
  }

  /** The time of the change, RFC 3339. */
  get at(): string {
    return this.#at;
  }

  get is_empty(): boolean {
    return this.#events.length === 0 && this.#ledger.length === 0 &&
      this.#operations.length === 0 && this.#instruments.length === 0;
  }

  get ledger(): readonly MovementRow[] {
    return this.#ledger;
  }

  /** The refund that has changed last, as JSON text; null: none has. */
  get refund_body(): string | null {
    return this.#refunds.at(-1)?.body ?? null;
  }

  get refund_id(): string | null {
    return this.#refunds.at(-1)?.id ?? null;
  }

  get saved_id(): string | null {
    return this.#instruments.find(({ act }) => act === "save")?.id ?? null;
  }

  /** The dispute that has changed last, as JSON text; null: none has. */
  get dispute_body(): string | null {
    return this.#disputes.at(-1)?.body ?? null;
  }

  /** Applies a patch that the next event shows. Without a further event it is not stored. */
  amend(patch: Partial<T>): void {
    this.#subject = { ...this.#subject, ...patch };
  }

  /** Applies a patch to the resource and records one event of this type. */
  addEvent(type: EventTypeOf<T["object"]>, patch: Partial<T> = {}): void {
    this.#record(type, patch, null);
  }

  /**
   * Records the present state of a refund with its event, and applies a patch to its payment.
   * Returns the refund as JSON text.
   */
  addRefundEvent(type: EventTypeOf<"refund">, refund: Refund, patch: Partial<T> = {}): string {
    const body = JSON.stringify(refund);
    const { id, payment_id, status, amount_minor, currency, created_at } = refund;
    const i = this.#refunds.findIndex((earlier) => earlier.id === id);
    const is_new = type === "refund.created" || this.#refunds[i]?.is_to_payer;
    const is_to_payer = is_new && refund.speed !== null && refund.destination === null;
    const row = {
      ...{ id, payment_id, status, amount_minor, currency, created_at, body },
      ...(is_to_payer && { is_to_payer }),
    };
    if (i < 0) this.#refunds.push(row);
    else this.#refunds[i] = row;
    this.#record(type, patch, body);
    return body;
  }

  /**
   * Records the present state of a dispute with its event. Returns the dispute as JSON text.
   * @param provider_reference of a new live dispute
   */
  addDisputeEvent(
    type: EventTypeOf<"dispute">,
    dispute: Dispute,
    provider_reference: string | null = null,
  ): string {
    const body = JSON.stringify(dispute);
    const { id, payment_id, status, amount_minor, currency, created_at } = dispute;
    this.#disputes.push({
      ...{ id, payment_id, status, amount_minor, currency, provider_reference, created_at, body },
    });
    this.#record(type, {}, body);
    return body;
  }

  /** Records a ledger movement, in minor units of the resource's currency. */
  move(kind: MovementKind, amount_minor: number, refund_id: string | null = null): void {
    const { id: subject_id, currency } = this.#subject;
    this.addMovement(
      movementRow({ kind, subject_id, refund_id, amount_minor, currency }, this.context),
    );
  }

  /** Records a movement of money that belongs to another subject, such as the account. */
  addMovement(movement: MovementRow): void {
    this.#ledger.push(movement);
  }

  addInstrument(row: InstrumentAct): void {
    const { request_id, idempotency_key } = this.context;
    this.#instruments.push({
      ...row,
      at: this.#at,
      ...(request_id !== null && { request_id }),
      ...(idempotency_key !== null && { idempotency_key }),
    });
  }

  /**
   * Records the fingerprints of the IBAN from which the payment is collected, and the sealed
   * details of an instrument that it saves.
   */
  bindDetails(ibans: readonly string[], bank_details: Sealed | null): void {
    for (const row of this.#instruments) {
      if (row.act === "save" || row.act === "mandate" || row.act === "use") row.ibans = ibans;
      if (row.act === "save" && bank_details) row.bank_details = bank_details;
    }
  }

  beginAttempt(attempt: Attempt): void {
    this.#attempt = attempt;
  }

  /** Returns what the change means to the checkout of the payment; null: nothing. */
  #checkoutRow(payment: Payment): AttemptRow | null {
    const { id: payment_id, checkout_id, status } = payment;
    const is_paid = statusOfSaved(payment) === "active" && this.#saved_as !== "active";
    const is_declined = status === "declined";
    if (checkout_id === null || !(this.#attempt || is_paid || is_declined)) return null;
    return {
      ...{ id: checkout_id, at: this.#at, payment_id },
      ...(this.#attempt && { is_attempt: true, revision: this.#attempt.revision }),
      ...(is_paid && { is_paid }),
      ...(is_declined && { is_declined }),
    };
  }

  keepReferences(provider: InstrumentProvider): void {
    this.#provider = provider;
  }

  #settleInstrument(payment: Payment): void {
    const { instrument_id: id } = payment;
    if (id === null) return;
    const saved = this.#instruments.find(({ act }) => act === "save");
    const status = statusOfSaved(payment);
    if (saved?.act === "save") {
      Object.assign(saved, { status, method: maskedMethod(payment) });
    } else if (this.#expects !== null && status !== this.#saved_as) {
      const provider = this.#provider && { provider: this.#provider };
      this.addInstrument({
        act: "result",
        ...{ id, status, method: maskedMethod(payment), ...provider },
      });
    }
  }

  /** Records an operation of a provider about the whole resource. */
  addOperation(operation: Pick<NewOperationRow, "op"> & Partial<NewOperationRow>): void {
    const { id: subject_id, amount_minor, currency } = this.#subject;
    const { at_ms, traceparent } = this.context;
    const { delay_ms = null } = operation;
    this.#operations.push({
      id: this.context.newId("pc_"),
      subject_id,
      refund_id: null,
      method_kind: methodOf(this.#subject),
      amount_minor,
      currency,
      request: { token: null },
      decline_is_error: false,
      lease_ms: 0,
      delay_ms: null,
      provider_reference: null,
      ...(traceparent && { traceparent }),
      ...(delay_ms !== null && { due: formatTime(at_ms + delay_ms) }),
      ...operation,
    });
  }

  /**
   * Returns the finished change with its response. Without an event the resource stays as it is.
   */
  finish(response: StoredResponse): Change {
    const subject = this.#subject;
    const changed = this.#events.length > 0 ? subject.object : null;
    if (changed === "payment") this.#settleInstrument(subject as Payment);
    const checkout = changed === "payment" ? this.#checkoutRow(subject as Payment) : null;
    return {
      response: this.#attempt?.respond && !this.context.livemode
        ? this.#attempt.respond(subject as Payment, checkout?.is_paid ?? false)
        : response,
      expects: this.#expects,
      payment: changed === "payment" ? paymentRow(subject as Payment, this.body) : null,
      transfer: changed === "transfer" ? transferRow(subject as Transfer, this.body) : null,
      refunds: this.#refunds,
      disputes: this.#disputes,
      ...(this.#instruments.length > 0 && { instruments: this.#instruments }),
      ...(checkout && { checkouts: [checkout] }),
      ledger: this.#ledger,
      events: this.#events,
      operations: this.#operations,
    };
  }

  /** @param object the refund or dispute that the event shows; null: it shows the resource */
  #record(type: EventType, patch: Partial<T>, object: string | null): void {
    const sequence = this.#subject.sequence + 1;
    this.#subject = { ...this.#subject, ...patch, sequence, updated_at: this.#at };
    const before = this.#text.next(this.#subject, sequence);
    const { id: subject_id } = this.#subject;
    this.#events.push(eventRow({ type, subject_id, sequence, object, before }, this.context));
  }
}

/** Makes a change that only stores a response, provided that the resource has not changed since. */
export function responseOnly(subject: Subject | null, response: StoredResponse): Change {
  return {
    response,
    expects: subject && standingOf(subject),
    payment: null,
    transfer: null,
    refunds: [],
    disputes: [],
    ledger: [],
    events: [],
    operations: [],
  };
}

export function movementRow(
  movement: Pick<
    MovementRow,
    "kind" | "subject_id" | "refund_id" | "amount_minor" | "currency"
  >,
  context: EventContext,
): MovementRow {
  const { debit, credit } = MOVEMENTS[movement.kind];
  return {
    transaction_id: context.newId("txn_", ENTRIES_PER_LEG),
    leg: 0,
    ...movement,
    debit_account: debit,
    credit_account: credit,
    created_at: formatTime(context.at_ms),
  };
}

function standingOf(subject: Subject): Change["expects"] {
  const { id, sequence } = subject;
  // Only an erasure writes a name of null (pay_internal.erased_person).
  const is_erased = subject.object === "payment" && subject.customer?.name === null;
  return { id, sequence, ...(is_erased && { is_erased }) };
}

function paymentRow(payment: Payment, body: string): PaymentRow {
  return {
    id: payment.id,
    status: payment.status,
    amount_minor: payment.amount_minor,
    amount_refunded: payment.amount_refunded,
    amount_refunding: payment.amount_refunding,
    amount_released: releasedAmount(payment),
    amount_disputed: payment.amount_disputed,
    currency: payment.currency,
    method_kind: payment.method_kind,
    reference: payment.reference,
    ...(payment.customer?.id !== undefined && { customer_id: payment.customer.id }),
    ...(payment.instrument_id !== null && { instrument_id: payment.instrument_id }),
    ...(payment.checkout_id !== null && { checkout_id: payment.checkout_id }),
    sequence: payment.sequence,
    created_at: payment.created_at,
    updated_at: payment.updated_at,
    body,
  };
}

function releasedAmount({ amount_minor, amount_captured }: Payment): number {
  return amount_captured === 0 ? 0 : amount_minor - amount_captured;
}

function transferRow(transfer: Transfer, body: string): TransferRow {
  const { id, status, amount_minor, currency, sequence, created_at, updated_at } = transfer;
  return { id, status, amount_minor, currency, sequence, created_at, updated_at, body };
}
