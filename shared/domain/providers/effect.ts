/**
 * The effects of provider events, and the steps that events of payments, refunds and disputes
 * share. Pure.
 */

import { formatAmount } from "../../core/currency.ts";
import { FINAL_PAYMENT_STATUSES } from "../../core/vocabulary.ts";
import type { Dispute } from "../../schema/dispute.ts";
import type { LedgerAccount } from "../../schema/list.ts";
import type { Payment } from "../../schema/payment.ts";
import type { Refund } from "../../schema/refund.ts";
import type { MovementRow } from "../../store/commit_rows.ts";
import type { DepositState, ProviderRecord } from "../../store/provider_rows.ts";
import type { PaymentChange, ResourceChange } from "../changes/change_builder.ts";
import type { ProviderEvent } from "./connector.ts";
import { movedAtProvider } from "./moved_at_provider.ts";

/** The effect of an event. Only an applied one has changed the resource. */
export type Effect =
  /**
   * An exception can come with it, for the operator; the movement is one of the account's money.
   */
  | { outcome: "applied"; exception: string | null; movement?: MovementRow }
  /** The event is late or repeated. The movement reverses what was booked for it before. */
  | { outcome: "ignored"; movement?: MovementRow }
  /** The event came before another one that it builds on: apply it later. */
  | { outcome: "wait" }
  /** The event contradicts our books. An operator has to look. */
  | { outcome: "exception"; exception: string }
  /** The event matches no payment or transfer. The movement books its money for the account. */
  | { outcome: "unmatched"; exception: string | null; movement: MovementRow | null };

/** The parts of a resource that an event can be about, if they are ours. */
export interface Parts {
  refund: Refund | null;
  dispute: Dispute | null;
  /** Set for an event about money that the payer sends, else null. */
  deposit: DepositState | null;
}

/** The state on which a record depends, besides the sequence of its subject. */
export type Expected = Partial<NonNullable<NonNullable<ProviderRecord["change"]>["expects"]>>;

/** The accounts that are the balance at the provider: what is there, and what has left it. */
const AT_PROVIDER: ReadonlySet<LedgerAccount> = new Set(["processor", "chargebacks", "external"]);

export const IGNORED = { outcome: "ignored" } as const;
export const WAIT = { outcome: "wait" } as const;

/**
 * Applies an event about money that this payment has not captured. Money that arrives for a payment
 * that is over is unmatched (`applySuccess`), and so are its refunds and disputes. While the
 * payment is open, the event waits for the capture or for the end of the payment.
 */
export function applyWithoutCapture(change: PaymentChange, event: ProviderEvent): Effect {
  if (!isOver(change.subject)) return WAIT;
  const moved = movedAtProvider(event);
  const { id, status } = change.subject;
  // Nobody else tells the operator of what a bank has booked.
  const found = event.bank?.entry
    ? `${shown(event)} was booked for ${id}, which is ${status} without money`
    : null;
  return apply(() => {
    change.move(moved > 0 ? "unmatched" : "unmatched_reversal", Math.abs(moved));
  }, found);
}

export function isOver({ status }: Payment): boolean {
  const final: readonly string[] = FINAL_PAYMENT_STATUSES;
  return final.includes(status);
}

export function isCaptured(payment: Payment): boolean {
  return payment.amount_captured > 0;
}

/**
 * Changes the resource if the amount of the event is the expected one. The charge of a bank inside
 * of it is a fee. Any other amount is an exception.
 */
export function applyAmount(
  change: ResourceChange,
  expected_minor: number,
  event: ProviderEvent,
  build: () => void,
): Effect {
  return differs(expected_minor, event) ?? apply(() => {
    build();
    const charge_minor = chargeIn(expected_minor, event);
    if (charge_minor) change.move("fee", charge_minor);
  });
}

export function differs(expected_minor: number, event: ProviderEvent): Effect | null {
  if (chargeIn(expected_minor, event) !== null) return null;
  return exception(
    `the amount is ${shown(event)} instead of ${formatAmount(expected_minor, event.currency)}`,
  );
}

/** Returns what the bank took inside of the amount; null: no charge of the event explains it. */
function chargeIn(expected_minor: number, event: ProviderEvent): number | null {
  const [least, most] = event.bank?.charge_minor ?? [0, 0];
  const less_minor = expected_minor - event.amount_minor;
  const charge = movedAtProvider(event) > 0 ? less_minor : -less_minor;
  return charge >= least && charge <= most ? charge : null;
}

export function shown({ amount_minor, currency }: ProviderEvent): string {
  return formatAmount(amount_minor, currency);
}

/** Makes the effect of an event that contradicts our books. */
export function exception(text: string): Effect {
  return { outcome: "exception", exception: text };
}

/** Changes the resource. */
export function apply(build: () => void, found: string | null = null): Effect {
  build();
  return { outcome: "applied", exception: found };
}

/** Returns the movements of the account's money that an effect makes. */
export function movementsOf(effect: Effect): MovementRow[] {
  return "movement" in effect && effect.movement ? [effect.movement] : [];
}

/** Returns the signed change of the balance at the provider that movements book. */
export function bookedAtProvider(movements: readonly MovementRow[]): number {
  return movements.reduce((sum, { debit_account, credit_account, amount_minor }) => {
    const change = Number(AT_PROVIDER.has(debit_account)) - Number(AT_PROVIDER.has(credit_account));
    return sum + change * amount_minor;
  }, 0);
}
