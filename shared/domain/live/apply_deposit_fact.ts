/**
 * Applies the facts of a chain to a payment that the payer sends to an address (architecture §7,
 * contract §2). `amount_received` is the sum of the transfers that the chain shows. Each final
 * transfer is booked as unapplied money until the sum reaches the amount. Then one change captures
 * the amount and books the rest. The order of facts does not matter. Pure.
 */

import { formatAmount } from "../../core/currency.ts";
import type { Payment } from "../../schema/payment.ts";
import type { DepositState } from "../../store/provider_rows.ts";
import type { PaymentChange } from "../changes/change_builder.ts";
import type { EventContext } from "../changes/event.ts";
import { type Deposit, missingAmount } from "../payments/lifecycle.ts";
import { complete, fail } from "../payments/settlement.ts";
import type { Fact } from "../providers/connector.ts";
import { apply, type Effect, finding, shown } from "./fact_effect.ts";
import { applyForAccount } from "./unmatched.ts";

/** A payment that the payer sends to an address of its own. */
type DepositPayment = Payment & Deposit;

/** The state of a payment that has received nothing yet. */
const NOTHING: DepositState = { final_minor: 0, reports: [] };

/** Applies a fact about a transfer to the address of a payment, or about the end of its time. */
export function applyDepositFact(
  payment: DepositPayment,
  deposit: DepositState | null,
  fact: Fact,
  context: EventContext,
): Effect {
  const known = deposit ?? NOTHING;
  if (fact.op === "abandon") return expire(payment, context);
  if (fact.currency !== payment.currency) return applyOtherToken(payment, fact, context);
  switch (fact.state) {
    case "received":
      return withReports(receive(payment, known, fact, context), payment, deposit);
    case "reorged":
      return withReports(undo(payment, known, fact, context), payment, deposit);
    case "succeeded":
      return withReports(finalize(payment, known, fact, context), payment, deposit);
    case "pending":
      return { outcome: "ignored" };
    default:
      return finding(`a payment by stablecoin cannot have a fact ${fact.state}`);
  }
}

/** Another token has come to the address. Its final transfers are booked for the account. */
function applyOtherToken(payment: DepositPayment, fact: Fact, context: EventContext): Effect {
  if (fact.state !== "succeeded") return { outcome: "ignored" };
  const text = `${shown(fact)} was sent to the address of ${payment.id}, which is in ` +
    `${payment.currency}`;
  return applyForAccount(fact, text, context);
}

/** Counts a transfer that a block has. */
function receive(
  payment: DepositPayment,
  { reports }: DepositState,
  { amount_minor }: Fact,
  context: EventContext,
): Effect {
  if (!isOpen(payment) || isCounted(reports)) return { outcome: "ignored" };
  return apply(payment, context, (change) => showReceived(change, amount_minor));
}

/** Takes back a transfer whose block the chain has undone. */
function undo(
  payment: DepositPayment,
  { reports }: DepositState,
  fact: Fact,
  context: EventContext,
): Effect {
  if (isFinal(reports)) {
    return finding(`the chain has undone a transfer of ${shown(fact)} that was final`);
  }
  const block = blockOf(fact);
  // The fact that the block has the transfer is stored but not applied yet.
  if (!reports.some((report) => report.state === "received" && blockOf(report) === block)) {
    return { outcome: "wait" };
  }
  // Another block has the same transfer.
  if (!isOpen(payment) || isCounted([...reports, fact])) return { outcome: "ignored" };
  return apply(payment, context, (change) => {
    showReceived(change, -fact.amount_minor);
    const { amount_minor, amount_received } = received(change);
    if (amount_received < amount_minor && isLate(payment, fact)) failUnpaid(change);
  });
}

/** Books a final transfer, in any status of the payment. */
function finalize(
  payment: DepositPayment,
  { final_minor, reports }: DepositState,
  fact: Fact,
  context: EventContext,
): Effect {
  const { amount_minor: asked } = payment;
  if (!isOpen(payment)) {
    return apply(
      payment,
      context,
      (change) => change.move("unmatched", fact.amount_minor),
      `${shown(fact)} was sent to a payment that is ${payment.status}`,
    );
  }
  const sum = final_minor + fact.amount_minor;
  const rest = sum - asked;
  const effect = apply(
    payment,
    context,
    (change) => {
      if (!isCounted(reports)) showReceived(change, fact.amount_minor);
      if (rest < 0) return change.move("unmatched", fact.amount_minor);
      if (final_minor > 0) change.move("unmatched_reversal", final_minor);
      complete(change, { tx_hash: fact.tx_hash });
      if (rest > 0) change.move("unmatched", rest);
    },
    rest > 0 ? `the payer sent ${formatAmount(rest, fact.currency)} too much` : null,
  );
  return withFinal(effect, { final_minor, reports });
}

/** Ends a payment whose time is over. If the whole amount is in blocks, finality decides. */
function expire(payment: DepositPayment, context: EventContext): Effect {
  if (!isOpen(payment) || missingAmount(payment) === 0) return { outcome: "ignored" };
  return apply(payment, context, failUnpaid);
}

function failUnpaid(change: PaymentChange): void {
  fail(change, received(change).amount_received > 0 ? "underpaid" : "expired", null);
}

/** Adds a signed amount to `amount_received`, and sets the status that follows from the sum. */
function showReceived(change: PaymentChange, signed_minor: number): void {
  const amount_received = received(change).amount_received + signed_minor;
  const status = amount_received > 0 ? "processing" : "pending";
  change.addEvent(`payment.${status}`, { status, amount_received });
}

function received({ subject }: PaymentChange): DepositPayment {
  return subject as DepositPayment;
}

/** Reports whether the payment waits for money. */
function isOpen({ status }: Payment): boolean {
  return status === "pending" || status === "processing";
}

/** Makes the record fail if another transfer of the payment has become final in the meantime. */
function withFinal(effect: Effect, { final_minor, reports }: DepositState): Effect {
  if (effect.outcome !== "applied" || effect.change.expects === null) return effect;
  const expects = { ...effect.change.expects, final_minor, reports: reports.length };
  return { ...effect, change: { ...effect.change, expects } };
}

/**
 * Makes the record fail if another fact about the transfer was handled in the meantime, even the
 * record of an ignored fact. Two blocks can have the transfer. Then "block A has it" is ignored
 * only because of block B, and "block B is undone" only because of block A.
 */
function withReports(
  effect: Effect,
  { id, sequence }: DepositPayment,
  deposit: DepositState | null,
): Effect {
  if (deposit === null) return effect;
  const reports = deposit.reports.length;
  if (effect.outcome === "ignored") return { ...effect, expects: { id, sequence, reports } };
  if (effect.outcome !== "applied" || effect.change.expects === null) return effect;
  const expects = { ...effect.change.expects, reports };
  return { ...effect, change: { ...effect.change, expects } };
}

type Reports = DepositState["reports"];

function isFinal(reports: Reports): boolean {
  return reports.some(({ state }) => state === "succeeded");
}

/** Reports whether `amount_received` includes the transfer: it is final, or a block has it. */
function isCounted(reports: Reports): boolean {
  const gone = new Set(reports.filter(({ state }) => state === "reorged").map(blockOf));
  return isFinal(reports) ||
    reports.some((report) => report.state === "received" && !gone.has(blockOf(report)));
}

/** Returns the hash of the block in a reference `<transaction>:<log>:<block>:<state>`. */
function blockOf({ reference }: Pick<Fact, "reference">): string {
  return reference.split(":")[2] ?? "";
}

/** Reports whether a fact comes from a block after the time of the payment. */
function isLate({ next_action }: Payment, { at }: Fact): boolean {
  return next_action?.type === "send_stablecoin" &&
    Date.parse(at) > Date.parse(next_action.expires_at);
}
