/**
 * The effects of facts, and the steps that facts of payments, refunds and disputes share. Pure.
 */

import { formatAmount } from "../../core/currency.ts";
import { FINAL_PAYMENT_STATUSES } from "../../core/vocabulary.ts";
import type { Dispute } from "../../schema/dispute.ts";
import type { Payment } from "../../schema/payment.ts";
import type { Refund } from "../../schema/refund.ts";
import type { Transfer } from "../../schema/transfer.ts";
import type { Change, MovementKind, MovementRow } from "../../store/commit_rows.ts";
import type { DepositState, ProviderRecord } from "../../store/provider_rows.ts";
import { ChangeBuilder, type PaymentChange } from "../changes/change_builder.ts";
import type { EventContext } from "../changes/event.ts";
import type { Fact } from "../providers/connector.ts";
import { movedAtProvider } from "./moved_at_provider.ts";

/** The effect of a fact. */
export type Effect =
  /** The rows of the change. A finding can come with it, for the operator. */
  | { outcome: "applied"; change: FactChange; finding: string | null }
  /** The fact is late or repeated. `expects`: the state on which this decision depends. */
  | { outcome: "ignored"; expects?: FactChange["expects"] }
  /** The fact came before another one that it builds on: apply it later. */
  | { outcome: "wait" }
  /** The fact contradicts our books. An operator has to look. */
  | { outcome: "finding"; finding: string }
  /** The fact matches no payment or transfer. The change books its money for the account. */
  | { outcome: "unmatched"; finding: string | null; change: FactChange | null };

/** The rows that a fact changes, and the refund and payment as of the change. */
export interface FactChange extends Omit<Change, "answer" | "expects"> {
  expects: NonNullable<ProviderRecord["change"]>["expects"];
  /** Null for a payout and for unmatched money, which belong to no payment. */
  subject: Payment | Transfer | null;
  /** The refund of the fact, as JSON text. */
  refund_body: string | null;
  /** The signed change of the balance at the provider. */
  booked_minor: number;
}

/** A payment with the refund or dispute that the fact is about, if it is ours. */
export interface FactSubject {
  payment: Payment;
  refund: Refund | null;
  dispute: Dispute | null;
  /** Set for a fact about a transfer on a chain, else null. */
  deposit: DepositState | null;
}

/** The effect of each kind of movement on the balance at the provider. */
const AT_PROVIDER: Record<MovementKind, -1 | 0 | 1> = {
  capture: 1,
  capture_reversal: -1,
  refund: -1,
  refund_reversal: 1,
  chargeback: -1,
  chargeback_reversal: 1,
  fee: -1,
  fee_reversal: 1,
  settlement: -1,
  settlement_reversal: 1,
  unmatched: 1,
  unmatched_reversal: -1,
  reserve: -1,
  reserve_reversal: 1,
  transfer: 0,
  transfer_completed: -1,
  transfer_reversed: 0,
};

/**
 * Applies a fact about money that this payment has not captured. Money that arrives for a payment
 * that is over is unmatched (`applySuccess`), and so are its refunds and disputes. While the
 * payment is open, the fact waits for the capture or for the end of the payment.
 */
export function applyWithoutCapture(payment: Payment, fact: Fact, context: EventContext): Effect {
  if (!isOver(payment)) return { outcome: "wait" };
  const moved = movedAtProvider(fact);
  return apply(payment, context, (change) => {
    change.move(moved > 0 ? "unmatched" : "unmatched_reversal", Math.abs(moved));
  });
}

/** Returns the provider's id of the object that a fact is about. */
export function objectOf({ reference }: Pick<Fact, "reference">): string {
  return reference.split(":", 1)[0]!;
}

export function isOver({ status }: Payment): boolean {
  const final: readonly string[] = FINAL_PAYMENT_STATUSES;
  return final.includes(status);
}

export function isCaptured(payment: Payment): boolean {
  return payment.amount_captured > 0;
}

/** Returns a finding if the amount of the fact is not the expected one. */
export function differs(expected_minor: number, fact: Fact): Effect | null {
  if (fact.amount_minor === expected_minor) return null;
  return finding(
    `the amount is ${shown(fact)} instead of ${formatAmount(expected_minor, fact.currency)}`,
  );
}

export function shown({ amount_minor, currency }: Fact): string {
  return formatAmount(amount_minor, currency);
}

/** Makes the effect of a fact that contradicts our books. */
export function finding(text: string): Effect {
  return { outcome: "finding", finding: text };
}

/** Builds the change of a payment. */
export function apply(
  payment: Payment,
  context: EventContext,
  build: (change: PaymentChange) => void,
  found: string | null = null,
  refundBody: () => string | null = () => null,
): Effect {
  const builder = new ChangeBuilder(payment, context);
  build(builder);
  return effectOf(builder, found, refundBody());
}

/** Returns the effect of the changes that a builder has collected. */
export function effectOf<T extends Payment | Transfer>(
  builder: ChangeBuilder<T>,
  found: string | null = null,
  refund_body: string | null = null,
): Effect {
  return { outcome: "applied", finding: found, change: changeOf(builder, refund_body) };
}

/** Returns the rows that a builder has collected. */
export function changeOf<T extends Payment | Transfer>(
  builder: ChangeBuilder<T>,
  refund_body: string | null = null,
): FactChange {
  const { answer: _, ...rows } = builder.finish({ status: 200, body: "" });
  return {
    ...rows,
    subject: builder.subject,
    refund_body,
    booked_minor: bookedAtProvider(rows.ledger),
  };
}

/** Returns the signed change of the balance at the provider that movements book. */
export function bookedAtProvider(movements: readonly MovementRow[]): number {
  return movements.reduce(
    (sum, { kind, amount_minor }) => sum + AT_PROVIDER[kind] * amount_minor,
    0,
  );
}
