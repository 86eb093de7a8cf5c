/**
 * Money that the payer sends: by bank transfers with a reference of the payment, or to an address
 * on a chain (architecture §7, contract §2). `amount_received` is the sum of the parts that the
 * provider shows. Each final part is booked as unapplied money until the sum reaches the amount.
 * Then one change captures the amount and books the rest. Money that comes late is unapplied. The
 * order of provider events does not matter. Pure.
 */

import { formatAmount } from "../../core/currency.ts";
import type { Payment } from "../../schema/payment.ts";
import type { DepositState } from "../../store/provider_rows.ts";
import type { PaymentChange } from "../changes/change_builder.ts";
import { type Deposit, isOpenDeposit, missingAmount, settlesAtOnce } from "./lifecycle.ts";
import { complete, fail, showReceived } from "./payment_steps.ts";
import type { ProviderEvent } from "../providers/connector.ts";
import {
  apply,
  type Effect,
  exception,
  type Expected,
  IGNORED,
  shown,
  WAIT,
} from "../providers/effect.ts";
import { applyForAccount } from "../providers/unmatched.ts";

/** Applies an event about a part of the money, or about the end of its time. */
export function applyReceivedMoney(
  change: PaymentChange,
  deposit: DepositState | null,
  event: ProviderEvent,
): Effect {
  const payment = received(change);
  const final_minor = settlesAtOnce(payment) ? payment.amount_received : 0;
  const known = deposit ?? { final_minor, reports: [] };
  if (event.op === "abandon") return expire(change);
  if (event.currency !== payment.currency) return applyOtherCurrency(change, event);
  switch (event.state) {
    case "received":
      return receive(change, known, event);
    case "reorged":
      return undo(change, known, event);
    case "succeeded":
      return finalize(change, known, event);
    case "pending":
      return IGNORED;
    default:
      return exception(
        `a payment by ${payment.method_kind} cannot have a provider event ${event.state}`,
      );
  }
}

/**
 * Returns what the record of an event depends on. It fails if another part has become final in the
 * meantime, or if another event about this part was handled, even one that was ignored: two blocks
 * can have a part. Then "block A has it" is ignored only because of block B, and "block B is
 * undone" only because of block A.
 */
export function expectedOf(
  { subject }: PaymentChange,
  deposit: DepositState | null,
  event: ProviderEvent,
): Expected {
  if (deposit === null || event.op === "abandon" || event.currency !== subject.currency) return {};
  const { final_minor, reports } = deposit;
  const is_final = event.state === "succeeded" && isOpenDeposit(subject);
  return { reports: reports.length, ...(is_final && { final_minor }) };
}

/** Another currency or token has come. Its final parts are booked for the account. */
function applyOtherCurrency({ subject, context }: PaymentChange, event: ProviderEvent): Effect {
  if (event.state !== "succeeded") return IGNORED;
  const text = `${shown(event)} was sent to ${subject.id}, which is in ` +
    `${subject.currency}`;
  return applyForAccount(event, text, context);
}

/** Counts a part that has come, and can still be undone. */
function receive(change: PaymentChange, { reports }: DepositState, event: ProviderEvent): Effect {
  if (!isOpenDeposit(change.subject) || isCounted(reports)) return IGNORED;
  return apply(() => showReceived(change, event.amount_minor));
}

/** Takes back a part that was undone. */
function undo(change: PaymentChange, { reports }: DepositState, event: ProviderEvent): Effect {
  if (isFinal(reports)) {
    // Undone in one block before it was final in another one.
    const was_final = isFinal(reports.filter(({ is_later }) => !is_later));
    return was_final ? exception(`${shown(event)} was undone after it had been final`) : IGNORED;
  }
  const gone = reportOf(event);
  // The event that the part has come is stored but not applied yet.
  const is_known = event.is_counted ||
    reports.some((report) => report.state === "received" && report.block_hash === gone.block_hash);
  if (!is_known) return WAIT;
  // Another block has the part too, and counts.
  if (!isOpenDeposit(change.subject) || isCounted([...reports, gone])) return IGNORED;
  const { subject: payment } = change;
  return apply(() => {
    showReceived(change, -event.amount_minor);
    if (missingAmount(received(change)) > 0 && isLate(payment, event)) failUnpaid(change);
  });
}

/** Books a final part, in any status of the payment. */
function finalize(
  change: PaymentChange,
  { final_minor, reports }: DepositState,
  event: ProviderEvent,
): Effect {
  const { subject: payment } = change;
  if (!isOpenDeposit(payment)) {
    return apply(
      () => {
        // Another part can have been counted before the end.
        if (settlesAtOnce(payment)) showReceived(change, event.amount_minor);
        change.move("unmatched", event.amount_minor);
      },
      `${shown(event)} was sent to a payment that is ${payment.status}`,
    );
  }
  const rest = final_minor + event.amount_minor - payment.amount_minor;
  return apply(
    () => {
      const received_minor = event.is_counted || isCounted(reports) ? 0 : event.amount_minor;
      if (rest < 0) {
        if (received_minor > 0) showReceived(change, received_minor);
        return change.move("unmatched", event.amount_minor);
      }
      if (final_minor > 0) change.move("unmatched_reversal", final_minor);
      complete(change, { tx_hash: event.chain?.tx_hash, received_minor });
      if (rest > 0) change.move("unmatched", rest);
    },
    rest > 0 ? `the payer sent ${formatAmount(rest, event.currency)} too much` : null,
  );
}

/** Ends a payment whose time is over. If the whole amount has come, finality decides. */
function expire(change: PaymentChange): Effect {
  if (!isOpenDeposit(change.subject) || missingAmount(received(change)) === 0) return IGNORED;
  return apply(() => failUnpaid(change));
}

function failUnpaid(change: PaymentChange): void {
  fail(change, { code: received(change).amount_received > 0 ? "underpaid" : "expired" });
}

function received({ subject }: PaymentChange): Payment & Deposit {
  return subject as Payment & Deposit;
}

type Reports = DepositState["reports"];

function isFinal(reports: Reports): boolean {
  return reports.some(({ state }) => state === "succeeded");
}

/** Reports whether `amount_received` includes the part: it is final, or its block counts. */
function isCounted(reports: Reports): boolean {
  const gone = new Set(
    reports.filter(({ state }) => state === "reorged").map(({ block_hash }) => block_hash),
  );
  return isFinal(reports) ||
    reports.some(({ state, block_hash }) => state === "received" && !gone.has(block_hash));
}

/** Returns what a handled event tells about its part later. */
function reportOf({ state, chain }: ProviderEvent): Reports[number] {
  return { state, block_hash: chain?.block_hash ?? null };
}

/** Reports whether an event comes from a time after that of the payment. */
function isLate({ next_action }: Payment, { at }: ProviderEvent): boolean {
  return next_action !== null && "expires_at" in next_action &&
    Date.parse(at) > Date.parse(next_action.expires_at);
}
