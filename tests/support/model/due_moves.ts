/**
 * Changes of payments in a sandbox that no request makes: late results and deadlines (contract §2,
 * §3, §7).
 */

import type { Move, Standing } from "./payment_model.ts";
import { HELD } from "./statuses.ts";
import { TIMEOUT_MS } from "./declared_faults.ts";
import type { Due, Made } from "./model_steps.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Lifetimes of a waiting payment and of an authorization. */
const AUTHENTICATION_MS = 24 * HOUR_MS;
const AUTHORIZATION_MS = 7 * 24 * HOUR_MS;
/** Time in which a dispute takes evidence. */
export const EVIDENCE_MS = 7 * 24 * HOUR_MS;

/** A payment or transfer that is made now. */
export function madeNow<T>(
  id: string,
  at_ms: number,
  standing: T,
  events: Made<T>["events"],
): Made<T> {
  const made = { id, at_ms, changed_ms: at_ms, standing, events };
  return { ...made, due: [], disputes: 0, mandate_id: null };
}

/** Good Fridays and Easter Mondays of the years that a run can reach. */
const EASTER = new Set(
  ("2026-04-03 2026-04-06 2027-03-26 2027-03-29 2028-04-14 2028-04-17 2029-03-30 2029-04-02 " +
    "2030-04-19 2030-04-22 2031-04-11 2031-04-14 2032-03-26 2032-03-29 2033-04-15 2033-04-18 " +
    "2034-04-07 2034-04-10 2035-03-23 2035-03-26 2036-04-11 2036-04-14 2037-04-03 2037-04-06")
    .split(" "),
);

/** The beginning of the due date of a collection: a day of TARGET, 14 days later or more. */
export function dueDate(at_ms: number): number {
  for (let day = Math.floor(at_ms / DAY_MS) + 14;; day++) {
    const date = new Date(day * DAY_MS);
    const text = date.toISOString().slice(0, 10);
    const is_closed = [0, 6].includes(date.getUTCDay()) || EASTER.has(text) ||
      /-(01-01|05-01|12-25|12-26)$/.test(text);
    if (!is_closed) return day * DAY_MS;
  }
}

/** The time a number of months before another; below 0, after it. */
export function monthsBefore(at_ms: number, months: number): number {
  const date = new Date(at_ms);
  const day = date.getUTCDate();
  date.setUTCMonth(date.getUTCMonth() - months);
  // A month without this day ends before it.
  if (date.getUTCDate() !== day) date.setUTCDate(0);
  return date.getTime();
}

/** The move whose response a timeout has hidden. */
export function laterMove(payment: Made<Standing>, move: Move, at_ms: number, id: string): Due {
  const is_refund = move.do === "refund";
  return {
    at_ms: at_ms + TIMEOUT_MS,
    waits: () =>
      is_refund
        ? payment.standing.refunds.some((one) => one.id === id && one.status === "pending")
        : HELD.includes(payment.standing.status),
    move: is_refund ? { do: "advance_refund", id, to: "completed" } : move,
  };
}

/** Notes the end of a payment or dispute that has come to a status in which it cannot stay. */
export function schedule(
  payment: Made<Standing>,
  before: Pick<Standing, "status" | "dispute">,
  at_ms: number,
): void {
  const { status, dispute } = payment.standing;
  if (status !== before.status && status === "requires_action") {
    const waits = () => payment.standing.status === status;
    const move = { do: "advance", to: "failed" } as const;
    payment.due.push({ at_ms: at_ms + AUTHENTICATION_MS, waits, move, did: "expired_payments" });
  }
  if (status !== before.status && status === "authorized") {
    const move = { do: "advance", to: "cancelled" } as const;
    const waits = () => HELD.includes(payment.standing.status);
    payment.due.push({ at_ms: at_ms + AUTHORIZATION_MS, waits, move, did: "expired_payments" });
  }
  if (dispute === null || before.dispute !== null) return;
  const number = ++payment.disputes;
  payment.due.push({
    at_ms: at_ms + EVIDENCE_MS,
    waits: () => {
      const present = payment.standing.dispute;
      return payment.disputes === number && present === "needs_response";
    },
    move: { do: "accept" },
    did: "disputes_closed",
  });
}
