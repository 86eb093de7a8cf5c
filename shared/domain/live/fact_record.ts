/** Applies facts to their subjects, and makes records of their effects (architecture §7). Pure. */

import { formatTime } from "../../core/clock.ts";
import type { Dispute } from "../../schema/dispute.ts";
import type { Payment } from "../../schema/payment.ts";
import type { Refund } from "../../schema/refund.ts";
import type { Transfer } from "../../schema/transfer.ts";
import type { DepositState, HandledFact, ProviderRecord } from "../../store/provider_rows.ts";
import type { EventContext } from "../changes/event.ts";
import type { Fact, ProviderCall, StoredFact } from "../providers/connector.ts";
import { applyFact } from "./apply_fact.ts";
import type { Effect, FactChange } from "./fact_effect.ts";
import { applyTransferFact } from "./apply_transfer_fact.ts";
import { afterUnmatched } from "./unmatched.ts";

/** Age after which a fact that waits for another one is a finding. Polls bring it within hours. */
const WAIT_LIMIT_MS = 7 * 24 * 3_600_000;

/** The subject of a fact, and the refund or dispute that the fact is about. */
export interface SubjectOfFact {
  subject: Payment | Transfer;
  refund: Refund | null;
  dispute: Dispute | null;
  /** Set for a fact about a transfer on a chain, else null. */
  deposit: DepositState | null;
}

/**
 * Applies a fact to the payment or transfer of a call, and to the refund or dispute that it is about.
 * @param booked_minor the amount that the ledger has booked for the fact as unmatched
 */
export function applyToSubject(
  { subject, refund, dispute, deposit }: SubjectOfFact,
  fact: Fact,
  booked_minor: number,
  context: EventContext,
): Effect {
  const effect = subject.object === "payment"
    ? applyFact({ payment: subject, refund, dispute, deposit }, fact, context)
    : applyTransferFact(subject, fact, context);
  return afterUnmatched(effect, fact, booked_minor, context);
}

/**
 * Ends the wait of a stored fact: the fact that it builds on has not come within the limit, or it
 * has come and changed no payment.
 */
export function endWait(effect: Effect, fact: StoredFact, context: EventContext): Effect {
  const age_ms = context.at_ms - Date.parse(fact.received_at);
  if (effect.outcome !== "wait") return effect;
  if (!fact.follows_unmatched && age_ms <= WAIT_LIMIT_MS) return effect;
  const reason = fact.follows_unmatched ? "is unmatched" : "has not come";
  const finding = `${fact.op} ${fact.state} builds on a fact that ${reason}`;
  return afterUnmatched({ outcome: "finding", finding }, fact, fact.booked_minor, context);
}

/**
 * Makes the record of an effect of one fact.
 * @param was_booked_minor the amount that the ledger has booked for the fact before
 */
export function recordOf(
  environment_id: string,
  fact: Fact,
  effect: Effect,
  was_booked_minor: number,
): ProviderRecord {
  return {
    environment_id,
    call_id: null,
    call: null,
    facts: [handled(fact, effect, was_booked_minor)],
    change: changeIn(effect) ?? expectationIn(effect),
    answer: null,
  };
}

function changeIn(effect: Effect): FactChange | null {
  return effect.outcome === "applied" || effect.outcome === "unmatched" ? effect.change : null;
}

/** Makes a change without rows from the expectation of a fact that is ignored. */
function expectationIn(effect: Effect): ProviderRecord["change"] {
  if (effect.outcome !== "ignored" || !effect.expects) return null;
  return {
    expects: effect.expects,
    payment: null,
    transfer: null,
    refunds: [],
    disputes: [],
    ledger: [],
    events: [],
    calls: [],
  };
}

/** Makes a fact with the outcome of its effect. */
export function handled(fact: Fact, effect: Effect, was_booked_minor: number): HandledFact {
  return {
    ...fact,
    // A refund that somebody has made at the provider: later facts of it find it by this.
    refund_id: fact.refund_id ?? (fact.op === "refund" ? changeIn(effect)?.refunds[0]?.id : null) ??
      null,
    outcome: effect.outcome === "wait" ? null : effect.outcome,
    finding: "finding" in effect ? effect.finding : null,
    booked_minor: was_booked_minor + (changeIn(effect)?.booked_minor ?? 0),
    was_booked_minor,
  };
}

/** Makes a fact that the worker applies later. */
export function unhandled(fact: Fact): HandledFact {
  return { ...fact, outcome: null, finding: null, booked_minor: 0, was_booked_minor: 0 };
}

/**
 * Makes the finding about an account whose calls cannot work, once a day. It names the first call
 * that was refused.
 */
export function unusableAccount(
  call: ProviderCall,
  account_id: string,
  reason: string,
  context: EventContext,
): HandledFact {
  const at = formatTime(context.at_ms);
  const { op, amount_minor, currency, subject: { id, livemode } } = call;
  const unknown = { subject_id: null, refund_id: null, provider_reference: null };
  const fact: Fact = {
    account_id,
    reference: `${account_id}:unusable:${at.slice(0, 10)}`,
    op,
    state: "failed",
    ...unknown,
    amount_minor,
    currency,
    at,
    livemode,
  };
  const finding = `calls are refused since ${op} of ${id}: ${reason}`.slice(0, 500);
  return handled(fact, { outcome: "finding", finding }, 0);
}
