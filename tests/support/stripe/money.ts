/** Refunds and payouts. The double keeps their limits, because localstripe has none. */

import type { StripeActions } from "./double.ts";
import type { StripeObject } from "./journal.ts";
import {
  done,
  type Form,
  metadataOf,
  missing,
  nowSeconds,
  type Outcome,
  refuse,
  unexpectedState,
  type Work,
} from "./work.ts";

/** POST /v1/refunds. */
export async function createRefund(work: Work, form: Form): Promise<Outcome> {
  const intent = work.find("payment_intent", form.payment_intent);
  if (!intent) return missing("payment_intent");
  const charge = work.find("charge", intent.latest_charge);
  if (intent.status !== "succeeded" || !charge) return unexpectedState(intent);
  if (charge.disputed) return refuse({ code: "charge_disputed" }, true);
  const left = charge.amount_captured - charge.amount_refunded;
  const amount = Number(form.amount ?? left);
  if (left === 0) return refuse({ code: "charge_already_refunded" }, true);
  if (!Number.isSafeInteger(amount) || amount < 1 || amount > left) {
    return refuse({ param: "amount", message: "greater than unrefunded amount" }, true);
  }
  const { currency, _token: { card, refund: behaviour } } = intent;
  const payment = { amount: charge.amount_captured, currency, manual: false, card };
  const change = { verb: "refund", amount, authenticated: true } as const;
  const { status } = await work.engine.judge(payment, change);
  if (status !== 200) throw new Error(`localstripe returns ${status} for a refund`);
  const refund = work.make("refund", "re", {
    amount,
    currency,
    charge: charge.id,
    payment_intent: intent.id,
    status: behaviour === "pending" ? "pending" : "succeeded",
    metadata: metadataOf(form),
    reason: form.reason ?? null,
    failure_reason: null,
  });
  // A pending refund has not left the balance yet.
  const is_pending = refund.status === "pending";
  refund.balance_transaction = is_pending ? null : work.move("refund", refund, -amount).id;
  work.put(charge).amount_refunded += amount;
  charge.refunded = charge.amount_refunded === charge.amount_captured;
  work.event("refund.created", refund);
  work.event("charge.refunded", charge);
  // The payer's bank refuses the refund later, so the response says that it succeeded.
  if (behaviour !== "failed") return done(refund);
  return { ...done(refund), later: () => failRefund(work, refund, charge) };
}

/** Settles a pending refund as succeeded or failed. One that has succeeded can fail later. */
export function settleRefund(work: Work, id: string, status: string): Outcome {
  const refund = work.find("refund", id);
  if (refund?.status !== "pending" && !(refund?.status === "succeeded" && status === "failed")) {
    return unexpectedState(refund);
  }
  if (status === "failed") {
    failRefund(work, work.put(refund), work.put(work.find("charge", refund.charge)!));
  } else {
    work.put(refund).status = status;
    refund.balance_transaction = work.move("refund", refund, -refund.amount).id;
    work.event("refund.updated", refund);
  }
  return done(refund);
}

/** Books a movement of the account: a fee, a reserve, or money of another product of Stripe. */
export function moveBalance(
  work: Work,
  { type, amount, fee = 0 }: StripeActions["movements"],
): Outcome {
  return done(work.move(type, { id: null, currency: "eur" }, amount, fee));
}

/**
 * Pays out the balance of a currency, and debits the bank account if the balance is below zero. The
 * payout stays on its way.
 */
export function createPayout(work: Work, { currency }: StripeActions["payouts"]): Outcome {
  const open = work.journal.list(work.owner, "balance_transaction")
    .filter((moved) => moved.currency === currency && !moved.payout);
  const amount = open.reduce((sum, { net }) => sum + net, 0);
  if (amount === 0) return refuse({ code: "balance_insufficient" });
  const payout = work.make("payout", "po", {
    amount,
    currency,
    status: "pending",
    automatic: true,
    type: "bank_account",
    arrival_date: nowSeconds(),
    reconciliation_status: "completed",
  });
  const moved = work.move("payout", payout, -amount);
  payout.balance_transaction = moved.id;
  moved.payout = payout.id;
  for (const paid of open) work.put({ ...paid, payout: payout.id });
  work.event("payout.created", payout);
  return done(payout);
}

function failRefund(work: Work, refund: StripeObject, charge: StripeObject): void {
  charge.amount_refunded -= refund.amount;
  charge.refunded = false;
  if (refund.balance_transaction) {
    const back = work.move("refund_failure", refund, refund.amount);
    refund.failure_balance_transaction = back.id;
  }
  Object.assign(refund, { status: "failed", failure_reason: "expired_or_canceled_card" });
  work.event("refund.updated", refund);
  work.event("refund.failed", refund);
}
