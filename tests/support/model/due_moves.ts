/**
 * Changes of payments in a sandbox that no request makes: late results and deadlines (contract §2,
 * §3, §7).
 */

import type { Move, Standing } from "../../../chaos/payment_model.ts";
import { TIMEOUT_MS } from "./declared_faults.ts";
import type { Due, Made } from "./model_steps.ts";

const HOUR_MS = 3_600_000;
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
  return { id, at_ms, changed_ms: at_ms, standing, events, due: [], disputes: 0 };
}

/** The move whose response a timeout has hidden. */
export function laterMove(payment: Made<Standing>, move: Move, at_ms: number, id: string): Due {
  const is_refund = move.do === "refund";
  return {
    at_ms: at_ms + TIMEOUT_MS,
    waits: () =>
      is_refund
        ? payment.standing.refunds.some((one) => one.id === id && one.status === "pending")
        : payment.standing.status === "authorized",
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
  const waits = () => payment.standing.status === status;
  if (status !== before.status && status === "requires_action") {
    const move = { do: "advance", to: "failed" } as const;
    payment.due.push({ at_ms: at_ms + AUTHENTICATION_MS, waits, move, did: "expired_payments" });
  }
  if (status !== before.status && status === "authorized") {
    const move = { do: "advance", to: "cancelled" } as const;
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
