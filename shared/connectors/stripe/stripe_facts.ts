/**
 * Stripe's objects as facts. Pure. The reference of a fact is object and state, so the answer of a
 * call, a notification, a poll and a look of one thing give the same reference.
 *
 * A fact whose amount our minor units cannot represent, or whose amount is not above zero, is left
 * out: the daily totals show the difference.
 */

import { formatTime } from "../../core/clock.ts";
import { normalizeCurrency } from "../../core/currency.ts";
import { idPattern } from "../../core/ids.ts";
import type { DisputeReason } from "../../schema/dispute.ts";
import type { DisputeReport } from "../../store/provider_rows.ts";
import type { Fact, FactOp, FactState } from "../../domain/providers/connector.ts";
import { fromStripeAmount } from "./stripe_amount.ts";
import { declineCodeOf } from "./stripe_errors.ts";
import {
  ABANDONED,
  BalanceTransaction,
  Charge,
  type Dispute,
  expandedOf,
  idOf,
  type PaymentIntent,
  PaymentMethod,
  type StripeError,
  type StripeRefund,
} from "./stripe_objects.ts";

/** The source of an object. */
export interface FactSource {
  account_id: string;
  /** Counts for objects that do not say it themselves. */
  livemode: boolean;
  /** The time of the event that shows the object, in Unix seconds. Null: not from an event. */
  event_seconds: number | null;
}

const PAYMENT_ID = idPattern("pay_");
const REFUND_ID = idPattern("re_");

/** Statuses of a dispute that took the money. Others, such as `warning_closed`, are inquiries. */
const DISPUTED = [
  "needs_response",
  "under_review",
  "lost",
  "won",
  "appeal_needs_response",
  "appeal_under_review",
];

/** Reasons of a dispute with a name of their own. Every other one is `general`. */
const REASONS: ReadonlyMap<string, DisputeReason> = new Map([
  ["fraudulent", "fraudulent"],
  ["product_not_received", "product_not_received"],
  ["duplicate", "duplicate"],
]);

/** A fact before its amount and time are converted. */
interface Draft {
  /** The object at Stripe, and its state in the reference. */
  of: { id: string; livemode?: boolean };
  reference_state: string;
  op: FactOp;
  state: FactState;
  subject_id: string | null;
  refund_id?: string | null;
  provider_reference: string | null;
  amount: number;
  /** In lower case. */
  currency: string;
  seconds: number;
  more?: Pick<Fact, "card" | "decline_code" | "dispute" | "failure_code" | "next_action">;
}

/**
 * Returns the facts of a payment: its present state, and the fee if the charge is expanded.
 *
 * @param error of the answer, for a decline whose payment does not repeat it
 */
export function intentFacts(
  source: FactSource,
  intent: PaymentIntent,
  error: StripeError | null = null,
): Fact[] {
  const charge = expandedOf(Charge, intent.latest_charge);
  const state = intentState(intent, charge, error);
  if (state === null) return [];
  const moved = expandedOf(BalanceTransaction, charge?.balance_transaction);
  const subject_id = paymentOf(intent.metadata);
  const fact = draftFact(source, {
    of: intent,
    subject_id,
    provider_reference: intent.id,
    currency: intent.currency,
    seconds: (state.state === "succeeded" ? moved?.created : undefined) ?? source.event_seconds ??
      (intent.status === "canceled" ? intent.canceled_at : charge?.created) ?? intent.created,
    ...state,
    more: { ...state.more, ...cardOf(intent, charge, error) },
  });
  if (fact === null) return [];
  if (state.state !== "succeeded" || charge === null || moved === null) return [fact];
  const [fee] = chargeFee(source, charge, moved);
  return fee ? [fact, { ...fee, subject_id, provider_reference: intent.id }] : [fact];
}

/**
 * The parts of the card that answers show. Before the charge only the payment method has them, and
 * after a decline the error, because the payment has no payment method any more.
 */
function cardOf(
  intent: PaymentIntent,
  charge: Charge | null,
  error: StripeError | null,
): Pick<Fact, "card"> {
  const methods = [intent, intent.last_payment_error, error]
    .map((holder) => expandedOf(PaymentMethod, holder?.payment_method)?.card);
  const card = [charge?.payment_method_details?.card, ...methods].find((one) => one);
  if (!card?.brand || !card.last4) return {};
  const { brand, last4, exp_month, exp_year } = card;
  return { card: { brand, last4, exp_month, exp_year } };
}

type IntentState = Pick<Draft, "reference_state" | "op" | "state" | "amount" | "more">;

/** Returns null for a state that says nothing, such as a payment that nobody has confirmed. */
function intentState(
  intent: PaymentIntent,
  charge: Charge | null,
  answer_error: StripeError | null,
): IntentState | null {
  const { amount } = intent;
  const op = "authorize";
  switch (intent.status) {
    case "succeeded": {
      const captured = intent.capture_method === "manual" ? "capture" : op;
      const received = { reference_state: "succeeded", amount: intent.amount_received };
      return { ...received, op: captured, state: "succeeded" };
    }
    case "requires_capture": {
      const capturable = intent.amount_capturable;
      return { reference_state: "authorized", op, state: "authorized", amount: capturable };
    }
    case "processing":
      return { reference_state: "pending", op, state: "pending", amount };
    case "requires_action":
      return actionState(intent);
    case "requires_payment_method": {
      const error = intent.last_payment_error ?? answer_error;
      if (error === null) return null;
      const decline_code = declineCodeOf(error, charge?.outcome?.type);
      const state = "declined";
      return { reference_state: state, op, state, amount, more: { decline_code } };
    }
    case "canceled":
      return cancelledState(intent);
  }
  return null;
}

function cancelledState(
  { cancellation_reason, latest_charge, amount }: PaymentIntent,
): IntentState {
  // A payer who has authenticated has a charge: the cancel released its amount.
  if (cancellation_reason === ABANDONED && idOf(latest_charge) === null) {
    const more = { failure_code: "expired" as const };
    return { reference_state: "expired", op: "abandon", state: "failed", amount, more };
  }
  return { reference_state: "cancelled", op: "cancel", state: "cancelled", amount };
}

function actionState({ next_action, amount }: PaymentIntent): IntentState {
  const url = next_action?.redirect_to_url?.url ?? "";
  if (next_action?.type === "redirect_to_url" && /^https?:\/\//.test(url) && URL.canParse(url)) {
    const more = { next_action: { type: "authenticate" as const, url } };
    const state = "requires_action";
    return { reference_state: state, op: "authorize", state, amount, more };
  }
  // Only Stripe's scripts can take another step, and no payer has the client secret for them.
  const more = { failure_code: "provider_refused" as const };
  return { reference_state: "failed", op: "authorize", state: "failed", amount, more };
}

/** Returns the fee of a charge. `moved` is the charge's movement of the balance. */
export function chargeFee(source: FactSource, charge: Charge, moved: BalanceTransaction): Fact[] {
  return present(draftFact(source, {
    of: charge,
    reference_state: "fee",
    op: "fee",
    state: "succeeded",
    subject_id: paymentOf(charge.metadata),
    provider_reference: idOf(charge.payment_intent),
    amount: moved.fee,
    currency: moved.currency,
    seconds: moved.created,
  }));
}

/** Returns the fact of a refund. */
export function refundFacts(source: FactSource, refund: StripeRefund): Fact[] {
  const state = refundState(refund.status);
  const moved = expandedOf(
    BalanceTransaction,
    state === "failed" ? refund.failure_balance_transaction : refund.balance_transaction,
  );
  const refund_id = refund.metadata?.refund ?? "";
  return present(draftFact(source, {
    of: { id: refund.id },
    reference_state: state,
    op: "refund",
    state,
    subject_id: paymentOf(refund.metadata),
    refund_id: REFUND_ID.test(refund_id) ? refund_id : null,
    provider_reference: idOf(refund.payment_intent),
    amount: refund.amount,
    currency: refund.currency,
    seconds: moved?.created ?? source.event_seconds ?? refund.created,
    ...(state === "failed" ? { more: { failure_code: "processing_failed" } } : {}),
  }));
}

function refundState(status: string | null | undefined): "pending" | "succeeded" | "failed" {
  if (status === "succeeded") return "succeeded";
  return status === "failed" || status === "canceled" ? "failed" : "pending";
}

/**
 * Returns the facts of a dispute: the withdrawal with its fee, the review, and its end. The first
 * fact is the withdrawal. A won dispute counts when the money is back, unless Stripe lists no movements at all.
 */
export function disputeFacts(source: FactSource, dispute: Dispute): Fact[] {
  const moves = dispute.balance_transactions;
  const taken = moves.find(({ amount }) => amount < 0);
  const back = moves.find(({ amount }) => amount > 0);
  const { amount, currency, status } = dispute;
  if (taken === undefined && (moves.length > 0 || !DISPUTED.includes(status))) return [];
  const common = {
    of: dispute,
    subject_id: null,
    provider_reference: idOf(dispute.payment_intent),
  };
  const fact = (
    reference_state: string,
    state: FactState,
    seconds: number,
    more: Draft["more"] = {},
  ) =>
    draftFact(source, {
      ...{ ...common, reference_state, op: "dispute", state, amount, currency, seconds, more },
    });
  const fee = (reference_state: string, state: FactState, signed: number, seconds: number) => {
    const paid_in = (taken ?? back)?.currency ?? currency;
    const values = { reference_state, state, amount: signed, currency: paid_in, seconds };
    return draftFact(source, { ...common, ...values, op: "fee" });
  };
  const ended = source.event_seconds ?? dispute.created;
  const is_reviewed = status === "under_review";
  const is_won = status === "won" && (back !== undefined || moves.length === 0);
  return [
    fact("disputed", "disputed", taken?.created ?? dispute.created, {
      dispute: disputeReport(dispute),
    }),
    is_reviewed ? fact("under_review", "dispute_under_review", ended) : null,
    taken ? fee("fee", "succeeded", taken.fee, taken.created) : null,
    is_won ? fact("won", "dispute_won", back?.created ?? ended) : null,
    back ? fee("fee_returned", "returned", -back.fee, back.created) : null,
    status === "lost" ? fact("lost", "dispute_lost", ended) : null,
  ].flatMap(present);
}

/** Returns the parts of a dispute that answers show. */
export function disputeReport({ reason, evidence_details }: Dispute): DisputeReport {
  // 0: the payer's bank takes no evidence.
  const due_by = evidence_details?.due_by || null;
  return {
    reason: REASONS.get(reason) ?? "general",
    evidence_due_by: due_by === null ? null : formatTime(due_by * 1000),
  };
}

/** Our payment that the metadata name. Another program may use the same name for its own ids. */
function paymentOf(metadata: PaymentIntent["metadata"]): string | null {
  const named = metadata?.payment ?? "";
  return PAYMENT_ID.test(named) ? named : null;
}

/** Makes a fact. Returns null if its amount is not above zero or not one of our minor units. */
export function draftFact(source: FactSource, draft: Draft): Fact | null {
  const currency = normalizeCurrency(draft.currency);
  const amount_minor = fromStripeAmount(draft.amount, currency);
  if (amount_minor === null || amount_minor <= 0) return null;
  return {
    account_id: source.account_id,
    reference: `${draft.of.id}:${draft.reference_state}`,
    op: draft.op,
    state: draft.state,
    subject_id: draft.subject_id,
    refund_id: draft.refund_id ?? null,
    provider_reference: draft.provider_reference,
    amount_minor,
    currency,
    at: formatTime(draft.seconds * 1000),
    livemode: draft.of.livemode ?? source.livemode,
    ...draft.more,
  };
}

/** Returns a list with the fact, or an empty one. */
export function present(fact: Fact | null): Fact[] {
  return fact === null ? [] : [fact];
}
