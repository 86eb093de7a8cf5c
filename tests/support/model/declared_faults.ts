/**
 * The declared faults of a sandbox, and the responses that they cause, as contract §7 describes
 * them. It shares no code with the product.
 */

import type { Expected, Standing } from "./payment_model.ts";
import { newSaved } from "./saved_model.ts";
import type { TransferStanding } from "./transfer_model.ts";

/** A fault as a test declares it. */
export interface FaultDeclaration {
  on: "request" | "provider";
  fault: string;
  times: number;
  /** Its conditions; all of them must match. */
  where: Readonly<Record<string, string>>;
}

/** The time after which the result comes that a timeout of the provider has hidden. */
export const TIMEOUT_MS = 60_000;
/** The faults of requests that come before anything is done. */
const BEFORE: Readonly<Record<string, { http: number; code: string }>> = {
  rate_limited: { http: 429, code: "rate_limited" },
  service_unavailable: { http: 503, code: "service_unavailable" },
  server_error_before: { http: 500, code: "internal_error" },
};

/** Returns the response of a request that fails before it is processed; null if it is processed. */
export function refusalOf(fault: string | null): { http: number; code: string } | null {
  return fault === null ? null : BEFORE[fault] ?? null;
}

/** The faults of a sandbox, oldest first. */
export class DeclaredFaults {
  #declared: (FaultDeclaration & { at_ms: number; left: number })[] = [];

  declare(fault: FaultDeclaration, at_ms: number): void {
    this.#declared.push({ ...fault, at_ms, left: fault.times });
  }

  /** Counts the oldest open fault that a target matches. Returns its name; null: none matches. */
  take(on: FaultDeclaration["on"], target: Readonly<Record<string, string | null>>): string | null {
    const found = this.#declared.find((declared) =>
      declared.on === on && declared.left > 0 &&
      Object.entries(declared.where).every(([name, value]) => target[name] === value)
    );
    if (found === undefined) return null;
    found.left--;
    return found.fault;
  }

  /** How often each fault will still happen, newest fault first. */
  left(): number[] {
    return this.#declared.map(({ left }) => left).toReversed();
  }

  /** Forgets the faults from before a time. */
  purgeBefore(at_ms: number): void {
    this.#declared = this.#declared.filter((declared) => declared.at_ms >= at_ms);
  }

  clear(): void {
    this.#declared = [];
  }
}

/**
 * The expected response to a create whose authorization has a fault. `usual`: without the fault.
 */
export function expectFaultyCreate(
  usual: Expected<Standing>,
  fault: string,
  is_sandbox: boolean,
): Expected<Standing> {
  const status = fault === "timeout" ? "processing" : fault;
  const events = ["payment.created", `payment.${status}`];
  const next: Standing = {
    ...usual.next,
    status,
    captured: 0,
    refunded: 0,
    disputed: 0,
    dispute: null,
    refunds: [],
    sequence: events.length,
    saved: usual.next.saved &&
      newSaved(usual.next.saved.name, usual.next.saved.usage, { ...usual.next, status }),
  };
  return fault === "declined" && !is_sandbox
    ? { http: 402, code: "payment_declined", next, events }
    : { http: 201, code: null, next, events };
}

/** The status that a payment has after the result that a timeout has hidden. */
export function laterStatus(usual: Standing): string {
  if (usual.status === "declined" || usual.status === "failed") return usual.status;
  return usual.is_captured_later ? "authorized" : "completed";
}

/**
 * The expected response to a capture, cancel or refund with a fault. `usual`: without the fault.
 */
export function expectFaultyMove(
  payment: Standing,
  usual: Expected<Standing>,
  fault: string,
): Expected<Standing> {
  if (usual.refund !== undefined) return expectFaultyRefund(payment, usual.refund.amount, fault);
  return fault === "timeout"
    ? { http: 200, code: null, next: payment, events: [] }
    : { http: 402, code: "provider_refused", next: payment, events: [] };
}

/** The refund is stored: pending after a timeout, otherwise failed. */
function expectFaultyRefund(payment: Standing, amount: number, fault: string): Expected<Standing> {
  const waits = fault === "timeout";
  const status = waits ? "pending" : "failed";
  const events = ["refund.created", ...(waits ? [] : ["refund.failed"])];
  const refund = { id: null, amount, status, payment_status: payment.status } as const;
  const next = {
    ...payment,
    refunding: payment.refunding + (waits ? amount : 0),
    refunds: [...payment.refunds, refund],
    sequence: payment.sequence + events.length,
  };
  return { http: 201, code: null, next, events, refund };
}

/** The expected response to a new transfer with a fault. */
export function expectFaultyTransfer(amount: number, fault: string): Expected<TransferStanding> {
  const waits = fault === "timeout";
  const events = ["transfer.created", ...(waits ? [] : ["transfer.failed"])];
  const status = waits ? "pending" : "failed";
  const next = { status, is_to_wallet: false, amount, sequence: events.length };
  return { http: 201, code: null, next, events };
}
