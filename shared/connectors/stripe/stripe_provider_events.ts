/**
 * Stripe's objects as provider events. Pure. The reference of a provider event is object and state,
 * so the response to an operation, a notification, a poll and a sync of one object give the same
 * reference.
 *
 * A provider event about money is left out if our minor units cannot represent its amount, or if
 * its amount is not above zero: the daily totals show the difference.
 */

import { formatTime } from "../../core/clock.ts";
import { normalizeCurrency } from "../../core/currency.ts";
import { idPattern } from "../../core/ids.ts";
import type { DisputeReason } from "../../schema/statuses.ts";
import type { CardReport, DisputeReport } from "../../store/provider_rows.ts";
import type {
  ProviderAccount,
  ProviderEvent,
  ProviderEventOp,
  ProviderEventState,
} from "../../domain/providers/connector.ts";
import { fromStripeAmount } from "./stripe_amount.ts";
import { adviceOf, declineCodeOf } from "./stripe_errors.ts";
import {
  ABANDONED,
  BalanceTransaction,
  Charge,
  type Dispute,
  expandedOf,
  idOf,
  type KeptCard,
  type PaymentIntent,
  PaymentMethod,
  type StripeError,
  type StripeRefund,
} from "./stripe_objects.ts";

export interface ProviderEventSource {
  account_id: string;
  /** Counts for objects that do not say it themselves. */
  livemode: boolean;
  /** The time of the event that shows the object, in Unix seconds. Null: not from an event. */
  event_seconds: number | null;
}

export function accountSource({ id, secret }: ProviderAccount): ProviderEventSource {
  return { account_id: id, livemode: /^[a-z]+_live_/.test(secret ?? ""), event_seconds: null };
}

const PAYMENT_ID = idPattern("pay_");
const REFUND_ID = idPattern("re_");

/**
 * Statuses of a dispute. `money`: whether the dispute takes the money, also if Stripe lists no
 * movement; an inquiry does so only if it lists one. `end`: the end that we show. A prevented
 * dispute was settled before it was filed: without a movement nothing happened, and otherwise the
 * payer has the money, unless it came back.
 */
export const DISPUTE_STATUSES = {
  needs_response: { money: true, end: null },
  under_review: { money: true, end: null },
  appeal_needs_response: { money: true, end: null },
  appeal_under_review: { money: true, end: null },
  won: { money: true, end: "won" },
  lost: { money: true, end: "lost" },
  prevented: { money: false, end: "lost" },
  warning_needs_response: { money: false, end: null },
  warning_under_review: { money: false, end: null },
  warning_closed: { money: false, end: "won" },
} as const;

/** Reasons of a dispute with a name of their own. Every other one is `general`. */
const REASONS: ReadonlyMap<string, DisputeReason> = new Map([
  ["fraudulent", "fraudulent"],
  ["product_not_received", "product_not_received"],
  ["duplicate", "duplicate"],
]);

/** A provider event before its amount and time are converted. */
export interface Draft {
  /** The object at Stripe, and its state in the reference. */
  of: { id: string; livemode?: boolean };
  reference_state: string;
  op: ProviderEventOp;
  state: ProviderEventState;
  subject_id?: string | null;
  refund_id?: string | null;
  provider_reference?: string | null;
  amount: number;
  /** In lower case. */
  currency: string;
  seconds: number;
  more?: Pick<
    ProviderEvent,
    "advice" | "card" | "decline_code" | "dispute" | "failure_code" | "next_action"
  >;
}

/**
 * Returns the provider events of a payment: its present state, and the fee if the charge is
 * expanded.
 *
 * @param error of the response, for a decline whose payment does not repeat it
 */
export function intentEvents(
  source: ProviderEventSource,
  intent: PaymentIntent,
  error: StripeError | null = null,
): ProviderEvent[] {
  const charge = expandedOf(Charge, intent.latest_charge);
  const state = intentState(intent, charge, error);
  if (state === null) return [];
  const moved = expandedOf(BalanceTransaction, charge?.balance_transaction);
  const subject_id = paymentOf(intent.metadata);
  // Another program at the same account saves a card, which moves no money.
  if (intent.amount === 0 && (subject_id === null || intent.currency === "")) return [];
  const shown = cardOf(intent, charge, error);
  // To save a card alone makes no charge.
  const is_whole = intent.amount === 0 && shown.shown !== undefined;
  const terms = is_whole ? {} : chargeTerms(state, charge);
  const card = { ...shown, ...keptCard(source, intent), ...terms };
  const event = draftEvent(source, {
    of: intent,
    subject_id,
    provider_reference: intent.id,
    currency: intent.currency,
    seconds: (state.state === "succeeded" ? moved?.created : undefined) ?? source.event_seconds ??
      (intent.status === "canceled" ? intent.canceled_at : charge?.created) ?? intent.created,
    ...state,
    more: { ...state.more, ...(Object.keys(card).length > 0 && { card }) },
  });
  if (event === null) return [];
  if (state.state !== "succeeded" || charge === null || moved === null) return [event];
  const [fee] = chargeFee(source, charge, moved);
  return fee ? [event, { ...fee, subject_id, provider_reference: intent.id }] : [event];
}

/**
 * The parts of the card that responses show. Before the charge only the payment method has them,
 * and after a decline the error, because the payment has no payment method any more.
 */
function cardOf(
  intent: PaymentIntent,
  charge: Charge | null,
  error: StripeError | null,
): CardReport {
  const methods = [intent, intent.last_payment_error, error]
    .map((holder) => expandedOf(PaymentMethod, holder?.payment_method)?.card);
  const card = [charge?.payment_method_details?.card, ...methods].find((one) => one);
  const shown = shownCard(card);
  return shown === undefined ? {} : { shown };
}

function shownCard(card: KeptCard["card"]): CardReport["shown"] {
  if (!card?.brand || !card.last4) return undefined;
  const { brand, last4, exp_month, exp_year } = card;
  return { brand, last4, exp_month, exp_year };
}

/** The references of a card that Stripe keeps, with those of its customer. */
function keptCard(
  { account_id: account }: ProviderEventSource,
  intent: PaymentIntent,
): Pick<CardReport, "kept"> {
  const [customer, token] = [idOf(intent.customer), idOf(intent.payment_method)];
  return customer === null ? {} : { kept: { account, customer, ...(token !== null && { token }) } };
}

/**
 * The parts of a provider event that only the charge of a payment shows. An event has no more than
 * its id.
 */
function chargeTerms(
  { state }: IntentState,
  charge: Charge | null,
): CardReport {
  if (state !== "succeeded" && state !== "authorized") return {};
  if (charge === null) return { is_partial: true };
  const seconds = charge.payment_method_details?.card?.capture_before;
  return state === "authorized" && seconds ? { capture_before: formatTime(seconds * 1000) } : {};
}

type IntentState = Pick<Draft, "reference_state" | "op" | "state" | "amount" | "more">;

/** Returns null for a state that says nothing, such as a payment that nobody has confirmed. */
function intentState(
  intent: PaymentIntent,
  charge: Charge | null,
  response_error: StripeError | null,
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
      const error = intent.last_payment_error ?? response_error;
      if (error === null) return null;
      const decline_code = declineCodeOf(error, charge?.outcome?.type);
      const state = "declined";
      const more = { decline_code, ...adviceOf(decline_code, error) };
      return { reference_state: state, op, state, amount, more };
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

/** Returns the provider event of a detached card. Operations and notifications give the same. */
export function detachEvents(
  source: ProviderEventSource,
  card: Pick<KeptCard, "id" | "livemode">,
): ProviderEvent[] {
  return cardEvent(source, card, "detached", "detach");
}

export function renewalEvents(source: ProviderEventSource, method: KeptCard): ProviderEvent[] {
  const shown = shownCard(method.card);
  if (shown === undefined) return [];
  const { brand, last4, exp_month, exp_year } = shown;
  const state = `renewed ${brand} ${last4} ${exp_year}-${exp_month}`;
  return cardEvent(source, method, state, "renewal", { card: { shown } });
}

/** Makes an event about a card, which moves no money: an event needs a currency all the same. */
function cardEvent(
  source: ProviderEventSource,
  of: Draft["of"],
  reference_state: string,
  op: "detach" | "renewal",
  more: Draft["more"] = {},
): ProviderEvent[] {
  const no_money = { amount: 0, currency: "eur" };
  const seconds = source.event_seconds ?? 0;
  return present(draftEvent(source, {
    ...{ of, reference_state, op, state: "succeeded", ...no_money, seconds, more },
  }));
}

/** Returns the fee of a charge. `moved` is the charge's movement of the balance. */
export function chargeFee(
  source: ProviderEventSource,
  charge: Charge,
  moved: BalanceTransaction,
): ProviderEvent[] {
  return feeEvent(source, moved, {
    of: charge,
    reference_state: "fee",
    op: "fee",
    subject_id: paymentOf(charge.metadata),
    provider_reference: idOf(charge.payment_intent),
  });
}

/** Returns the fee of a movement. Stripe gives a fee back as a negative one. */
export function feeEvent(
  source: ProviderEventSource,
  { fee, currency, created }: BalanceTransaction,
  more: Pick<Draft, "of" | "reference_state" | "op" | "subject_id" | "provider_reference">,
): ProviderEvent[] {
  return present(draftEvent(source, {
    ...more,
    state: fee > 0 ? "succeeded" : "returned",
    amount: Math.abs(fee),
    currency,
    seconds: created,
  }));
}

/**
 * Returns the provider events of a refund. One that has failed after its money had left has
 * succeeded before, so both provider events come, each with the time of its movement.
 */
export function refundEvents(source: ProviderEventSource, refund: StripeRefund): ProviderEvent[] {
  const { created } = refund;
  const named = refund.metadata?.refund ?? "";
  const refund_id = REFUND_ID.test(named) ? named : null;
  const event = (
    reference_state: string,
    state: ProviderEventState,
    seconds: number,
    more: Draft["more"] = {},
  ) =>
    draftEvent(source, {
      of: { id: refund.id },
      reference_state,
      op: "refund",
      state,
      subject_id: paymentOf(refund.metadata),
      refund_id,
      provider_reference: idOf(refund.payment_intent),
      amount: refund.amount,
      currency: refund.currency,
      seconds,
      more,
    });
  const taken = expandedOf(BalanceTransaction, refund.balance_transaction);
  const back = expandedOf(BalanceTransaction, refund.failure_balance_transaction);
  const seen = source.event_seconds ?? created;
  switch (refundState(refund.status)) {
    case "pending":
      return present(event("pending", "pending", taken?.created ?? seen));
    case "succeeded": {
      // Stripe shows the end of an authorization as a refund that moves no money.
      const has_moved = refund_id !== null || idOf(refund.balance_transaction) !== null;
      return has_moved ? present(event("succeeded", "succeeded", taken?.created ?? seen)) : [];
    }
    case "failed": {
      const more = { failure_code: "processing_failed" } as const;
      const is_back = idOf(refund.failure_balance_transaction) !== null;
      return [
        is_back ? event("succeeded", "succeeded", taken?.created ?? created) : null,
        event("failed", is_back ? "returned" : "failed", back?.created ?? seen, more),
      ].flatMap(present);
    }
  }
}

function refundState(status: string | null | undefined): "pending" | "succeeded" | "failed" {
  if (status === "succeeded") return "succeeded";
  return status === "failed" || status === "canceled" ? "failed" : "pending";
}

/**
 * Returns the provider events of a dispute: the withdrawal with its fee, the review, and its end.
 * The first provider event is the withdrawal. A won dispute counts when the money is back, unless
 * Stripe lists no movements at all.
 */
export function disputeEvents(source: ProviderEventSource, dispute: Dispute): ProviderEvent[] {
  const { balance_transactions: moves, currency, status } = dispute;
  const { taken, back } = disputeMovements(dispute);
  const { money, end } = statusOf(status);
  if (taken === undefined && (moves.length > 0 || !money)) return [];
  const common = {
    of: dispute,
    provider_reference: idOf(dispute.payment_intent),
  };
  // If Stripe settles in another currency, the movements are in that one.
  const amountOf = (moved?: BalanceTransaction) =>
    moved?.currency === currency ? Math.abs(moved.amount) : dispute.amount;
  const event = (
    reference_state: string,
    state: ProviderEventState,
    seconds: number,
    more: Draft["more"] = {},
    amount = amountOf(taken),
  ) =>
    draftEvent(source, {
      ...{ ...common, reference_state, op: "dispute", state, amount, currency, seconds, more },
    });
  const fee = (reference_state: string, moved?: BalanceTransaction) =>
    moved ? feeEvent(source, moved, { ...common, reference_state, op: "fee" }) : [];
  const ended = source.event_seconds ?? dispute.created;
  const is_won = back === undefined ? status === "won" && moves.length === 0 : end !== null;
  return [
    event("disputed", "disputed", taken?.created ?? dispute.created, {
      dispute: disputeReport(dispute),
    }),
    status === "under_review" ? event("under_review", "dispute_under_review", ended) : null,
    ...fee("fee", taken),
    is_won ? event("won", "dispute_won", back?.created ?? ended, {}, amountOf(back)) : null,
    ...fee("fee_returned", back),
    end === "lost" && !is_won ? event("lost", "dispute_lost", ended) : null,
  ].flatMap(present);
}

/**
 * The movements of a dispute that its provider events book: the first withdrawal and the first
 * return. Stripe promises no order of the list, and a later movement must not take their place.
 */
export function disputeMovements({ balance_transactions }: Dispute) {
  const moves = balance_transactions.toSorted((a, b) => a.created - b.created);
  return {
    taken: moves.find(({ amount }) => amount < 0),
    back: moves.find(({ amount }) => amount > 0),
  };
}

function statusOf(status: string): { money: boolean; end: "won" | "lost" | null } {
  return Object.hasOwn(DISPUTE_STATUSES, status)
    ? DISPUTE_STATUSES[status as keyof typeof DISPUTE_STATUSES]
    : { money: false, end: null };
}

/** Returns the parts of a dispute that responses show. */
export function disputeReport({ reason, evidence_details }: Dispute): DisputeReport {
  // 0: the payer's bank takes no evidence.
  const due_by = evidence_details?.due_by || null;
  return {
    reason: REASONS.get(reason) ?? "general",
    evidence_due_by: due_by === null ? null : formatTime(due_by * 1000),
  };
}

/** Our payment that the metadata name. Another program may use the same name for its own ids. */
export function paymentOf(metadata: PaymentIntent["metadata"]): string | null {
  const named = metadata?.payment ?? "";
  return PAYMENT_ID.test(named) ? named : null;
}

/** The prefixes of the objects without money: a saved card, and one that is saved alone. */
const WITHOUT_MONEY = /^(?:pm|seti)_/;

/**
 * Makes a provider event. Returns null if its amount is not one of our minor units, or not above
 * zero although its object is money.
 */
export function draftEvent(source: ProviderEventSource, draft: Draft): ProviderEvent | null {
  const currency = normalizeCurrency(draft.currency);
  const amount_minor = fromStripeAmount(draft.amount, currency);
  if (amount_minor === null || amount_minor < (WITHOUT_MONEY.test(draft.of.id) ? 0 : 1)) {
    return null;
  }
  return {
    account_id: source.account_id,
    reference: `${draft.of.id}:${draft.reference_state}`,
    object_id: draft.of.id,
    op: draft.op,
    state: draft.state,
    subject_id: draft.subject_id ?? null,
    refund_id: draft.refund_id ?? null,
    provider_reference: draft.provider_reference ?? null,
    amount_minor,
    currency,
    at: formatTime(draft.seconds * 1000),
    livemode: draft.of.livemode ?? source.livemode,
    ...draft.more,
  };
}

export function present(event: ProviderEvent | null): ProviderEvent[] {
  return event === null ? [] : [event];
}
