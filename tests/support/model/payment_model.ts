/**
 * A model of payments, written from the interface and the contract (§2, §3). It shares no code with
 * the product, so a wrong rule has to be wrong twice. The model test and the chaos test's audit use
 * it.
 */

import { INSTRUMENTS, OUTCOMES } from "./instruments.ts";
import { endSaved, newSaved, type Saved, settleSaved } from "./saved_model.ts";
import { HELD, OPEN } from "./statuses.ts";

/** A payment in the model. Amounts are minor units. */
export interface Standing {
  status: string;
  kind: string;
  amount: number;
  /** Whether a request captures the payment after its authorization. */
  is_captured_later: boolean;
  /** Whether refunds stay pending until an advance. */
  refunds_wait: boolean;
  captured: number;
  /** Sum of the completed refunds. */
  refunded: number;
  /** Sum of the pending refunds. */
  refunding: number;
  disputed: number;
  /** The open or lost dispute of a payment that is charged back; null: it has none. */
  dispute: DisputeStatus | null;
  refunds: readonly RefundStanding[];
  /** Events so far. */
  sequence: number;
  /** The instrument that it saves, or whose mandate it is the first to use; null: none. */
  saved: Saved | null;
}

/** Status of a dispute that the merchant has not won. */
type DisputeStatus = "needs_response" | "under_review" | "lost";

/** A refund in the model. */
interface RefundStanding {
  /** Null until the response shows it. */
  id: string | null;
  amount: number;
  status: "pending" | "completed" | "failed";
  /** Status of the payment as the refund shows it. */
  payment_status: string;
}

/** A move of an existing payment. */
export type Move =
  | { do: "cancel" }
  /** Null for the whole amount. */
  | { do: "capture"; amount: number | null }
  /** Null for the rest. */
  | { do: "refund"; amount: number | null }
  /** Moves the refund with this id. */
  | { do: "advance_refund"; id: string; to: "completed" | "failed" }
  | { do: "advance"; to: string }
  /** By the bank, of a collection. */
  | { do: "return" }
  | DisputeMove
  | { do: "authenticate"; result: "success" | "failure" };

/** A move of the dispute of a payment. `saved` evidence is not submitted. */
export type DisputeMove =
  | { do: "evidence"; text: "winning" | "losing" | "other" | "saved"; is_late?: boolean }
  | { do: "accept" };

/** The expected response to a request. */
export interface Expected<T> {
  http: number;
  /** The error code; null if the request succeeds. */
  code: string | null;
  /** The state after the request. */
  next: T;
  /** The new events. */
  events: string[];
  /** The refund in the response, if the response is a refund. */
  refund?: RefundStanding;
  /** What the response shows, if it is an instrument or another payment. */
  shows?: Standing | Saved;
}

/** Events after `payment.created`, by the status of the new payment. */
const FIRST_EVENTS: Readonly<Record<string, string[]>> = {
  pending: [],
  requires_action: ["payment.requires_action"],
  processing: ["payment.processing"],
  authorized: ["payment.authorized"],
  completed: ["payment.completed"],
  declined: ["payment.declined"],
  failed: ["payment.failed"],
  refunded: ["payment.completed", "refund.created", "refund.completed", "payment.refunded"],
  chargeback: ["payment.completed", "dispute.created", "payment.chargeback"],
};

/** Statuses in which money was captured and none was returned or charged back as a whole. */
const PAID = ["completed", "partially_refunded"];

/**
 * The expected response to a create. An outcome overrides the instrument.
 * @param usage of the instrument that the payment saves; null: it saves none
 */
export function expectCreate(
  instrument: string,
  outcome: string | null,
  amount: number,
  is_sandbox: boolean,
  usage: string | null = null,
): Expected<Standing> {
  const { body, kind, on_due_date, is_for_saving = false, ...known } = INSTRUMENTS[instrument]!;
  const is_captured_later = body["capture"] === "manual";
  const is_collected = on_due_date !== undefined;
  // Without money there is nothing to collect and nothing to dispute.
  const is_done = amount === 0 && (is_collected || known.status === "chargeback");
  const forced = outcome === null ? is_done ? "completed" : known.status : OUTCOMES[outcome]!;
  const status = forced === "completed" && is_captured_later ? "authorized" : forced;
  const next = begin(kind, amount, status, {
    is_captured_later,
    refunds_wait: body["settlement"] === "manual",
    saved: usage === null ? null : newSaved(instrument, usage, { status, kind }),
  });
  const needs_money = is_captured_later || status === "refunded" || status === "chargeback";
  const is_given_back = status === "refunded" || status === "chargeback";
  const is_refused = is_captured_later && is_given_back || amount === 0 && needs_money ||
    (usage === null
      ? amount === 0 || is_for_saving
      : !is_collected && (kind !== "card" || body["card"] === undefined));
  if (is_refused) return { http: 400, code: "invalid_parameter", next, events: [] };
  return made(next, outcome === null ? known.code : "payment_declined", is_sandbox);
}

/** The expected response to a payment by a saved instrument. */
export function expectUse(saved: Saved, amount: number, off_session: boolean): Expected<Standing> {
  const { kind, on_due_date, uses, use_code } = INSTRUMENTS[saved.name]!;
  const usual = on_due_date === undefined ? "completed" : "processing";
  const next = begin(kind, amount, uses?.[off_session ? 1 : 0] ?? usual);
  if (!saved.is_kept || off_session && saved.usage !== "off_session") {
    return { http: 400, code: "invalid_parameter", next, events: [] };
  }
  if (saved.status !== "active") return { http: 409, code: "invalid_state", next, events: [] };
  return made(next, use_code, false);
}

/** The expected response to the end of the instrument of a payment. */
export function expectEnd(payment: Standing): Expected<Standing> {
  const saved = endSaved(payment.saved!, "deleted");
  const next = { ...payment, saved };
  return saved.status === "ended"
    ? { http: 200, code: null, next, events: [], shows: saved }
    : refused(payment);
}

/** A new payment in a status. */
function begin(
  kind: string,
  amount: number,
  status: string,
  more: Partial<Standing> = {},
): Standing {
  const has_money = ["completed", "refunded", "chargeback"].includes(status);
  const refund: RefundStanding = {
    ...{ id: null, amount, status: "completed", payment_status: "refunded" },
  };
  return {
    ...{ status, kind, amount, is_captured_later: false, refunds_wait: false },
    captured: has_money ? amount : 0,
    refunded: status === "refunded" ? amount : 0,
    refunding: 0,
    disputed: status === "chargeback" ? amount : 0,
    dispute: status === "chargeback" ? "needs_response" : null,
    refunds: status === "refunded" ? [refund] : [],
    sequence: 1 + FIRST_EVENTS[status]!.length,
    saved: null,
    ...more,
  };
}

/** The response to a create. @param code of its decline */
function made(next: Standing, code: string | undefined, is_sandbox: boolean): Expected<Standing> {
  const events = ["payment.created", ...FIRST_EVENTS[next.status]!];
  return next.status === "declined" && !is_sandbox
    ? { http: 402, code: code!, next, events }
    : { http: 201, code: null, next, events };
}

/** The expected response to a move of a payment. */
export function expectMove(payment: Standing, move: Move): Expected<Standing> {
  const { status } = payment;
  switch (move.do) {
    case "cancel":
      return ["pending", "requires_action", ...HELD].includes(status)
        ? become(payment, "cancelled")
        : refused(payment);
    case "capture":
      if (!HELD.includes(status)) return refused(payment);
      return (move.amount ?? 0) > payment.amount
        ? refused(payment, "invalid_parameter")
        : complete(payment, move.amount ?? payment.amount);
    case "refund":
      return expectRefund(payment, move.amount);
    case "advance_refund":
      return expectRefundAdvance(payment, move.id, move.to);
    case "authenticate":
      if (status !== "requires_action") return refused(payment);
      if (move.result === "failure") {
        return { ...become(payment, "declined"), http: 402, code: "authentication_failed" };
      }
      return payment.is_captured_later
        ? become(payment, "authorized")
        : complete(payment, payment.amount);
    case "advance":
      return expectAdvance(payment, move.to);
    case "return":
      return [...PAID, "refunded"].includes(status) && payment.captured > 0
        ? become(payment, "failed")
        : refused(payment);
    case "evidence":
    case "accept":
      return expectDisputeMove(payment, move);
  }
}

/** The dispute takes evidence once and in time. Two texts decide it. */
function expectDisputeMove(payment: Standing, move: DisputeMove): Expected<Standing> {
  const { dispute } = payment;
  if (dispute === null || dispute === "lost") return refused(payment);
  const lose = () => change(payment, ["dispute.lost"], { dispute: "lost" });
  if (move.do === "accept") return lose();
  if (dispute === "under_review" || move.is_late) return refused(payment);
  switch (move.text) {
    case "winning":
      return winDispute(payment);
    case "losing":
      return lose();
    case "other":
      return change(payment, ["dispute.updated"], { dispute: "under_review" });
    case "saved":
      return change(payment, ["dispute.updated"], {});
  }
}

/** The payment has its money and its earlier status back. */
function winDispute(payment: Standing): Expected<Standing> {
  const status = payment.refunded === 0 ? "completed" : "partially_refunded";
  const events = ["dispute.won", `payment.${status}`];
  return change(payment, events, { status, disputed: 0, dispute: null });
}

/** The amount of a payment that can be refunded or charged back. */
function restOf({ captured, refunded, refunding }: Standing): number {
  return captured - refunded - refunding;
}

function refused(
  payment: Standing,
  code: "invalid_state" | "invalid_parameter" | "not_found" = "invalid_state",
): Expected<Standing> {
  const http = { invalid_state: 409, invalid_parameter: 400, not_found: 404 }[code];
  return { http, code, next: payment, events: [] };
}

/** The payment changes with these events. */
function change(
  payment: Standing,
  events: string[],
  more: Partial<Standing>,
  http = 200,
): Expected<Standing> {
  const sequence = payment.sequence + events.length;
  const changed = { ...payment, ...more, sequence };
  const saved = settleSaved(payment.saved, changed);
  return { http, code: null, next: { ...changed, saved }, events };
}

function become(payment: Standing, status: string, more: Partial<Standing> = {}) {
  return change(payment, [`payment.${status}`], { status, ...more });
}

function complete(payment: Standing, captured: number): Expected<Standing> {
  return become(payment, "completed", { captured });
}

function expectRefund(payment: Standing, requested: number | null): Expected<Standing> {
  if (payment.captured === 0 || !PAID.includes(payment.status)) return refused(payment);
  const rest = restOf(payment);
  if ((requested ?? 0) > rest) return refused(payment, "invalid_parameter");
  if (rest === 0) return refused(payment);
  const amount = requested ?? rest;
  if (!payment.refunds_wait) {
    const refunded = giveBack(payment, amount);
    return { ...refunded, http: 201, refund: refunded.next.refunds.at(-1)! };
  }
  const refund: RefundStanding = {
    id: null,
    amount,
    status: "pending",
    payment_status: payment.status,
  };
  const more = { refunding: payment.refunding + amount, refunds: [...payment.refunds, refund] };
  return { ...change(payment, ["refund.created"], more, 201), refund };
}

/** A refund that completes at once. */
function giveBack(payment: Standing, amount: number): Expected<Standing> {
  const refunded = payment.refunded + amount;
  const status = refunded === payment.captured ? "refunded" : "partially_refunded";
  const refund: RefundStanding = { id: null, amount, status: "completed", payment_status: status };
  return change(payment, ["refund.created", "refund.completed", `payment.${status}`], {
    status,
    refunded,
    refunds: [...payment.refunds, refund],
  });
}

/**
 * A pending refund completes or fails, and a completed one can fail later. A payment that is
 * charged back or returned keeps its status.
 */
function expectRefundAdvance(
  payment: Standing,
  id: string,
  to: "completed" | "failed",
): Expected<Standing> {
  const found = payment.refunds.find((refund) => refund.id === id);
  if (found === undefined) return refused(payment, "not_found");
  if (to === found.status) return { ...change(payment, [], {}), refund: found };
  if (found.status === "completed") return failLater(payment, found);
  if (found.status !== "pending") return refused(payment);
  const refunding = payment.refunding - found.amount;
  const refunded = payment.refunded + (to === "completed" ? found.amount : 0);
  const is_moved = to === "completed" && PAID.includes(payment.status);
  const status = !is_moved
    ? payment.status
    : refunded === payment.captured
    ? "refunded"
    : "partially_refunded";
  const refund: RefundStanding = { ...found, status: to, payment_status: status };
  const refunds = payment.refunds.map((one) => one === found ? refund : one);
  const events = [`refund.${to}`, ...(is_moved ? [`payment.${status}`] : [])];
  return { ...change(payment, events, { status, refunded, refunding, refunds }), refund };
}

/** A completed refund fails: its amount can be refunded again. */
function failLater(payment: Standing, found: RefundStanding): Expected<Standing> {
  const refunded = payment.refunded - found.amount;
  const is_kept = payment.status === "chargeback" || payment.status === "failed";
  const status = is_kept ? payment.status : refunded === 0 ? "completed" : "partially_refunded";
  const refund: RefundStanding = { ...found, status: "failed", payment_status: status };
  const refunds = payment.refunds.map((one) => one === found ? refund : one);
  const events = ["refund.failed", ...(is_kept ? [] : [`payment.${status}`])];
  return { ...change(payment, events, { status, refunded, refunds }), refund };
}

function expectAdvance(payment: Standing, to: string): Expected<Standing> {
  const { status, amount, refunded, refunding, kind, is_captured_later } = payment;
  if (to === status) return change(payment, [], {});
  const rest = restOf(payment);
  if (PAID.includes(status)) {
    if (to === "chargeback" && rest > 0) {
      const more = { status: to, disputed: rest, dispute: "needs_response" } as const;
      return change(payment, ["dispute.created", "payment.chargeback"], more);
    }
    if (to === "refunded" && refunding === 0 && rest > 0) return giveBack(payment, rest);
    if (to === "partially_refunded" && rest > 1) return giveBack(payment, Math.floor(rest / 2));
    const is_bank = kind === "sepa" || kind === "swift";
    return to === "failed" && is_bank && payment.captured > 0
      ? become(payment, to)
      : refused(payment);
  }
  if (status === "chargeback") {
    // The merchant has won the dispute.
    const before = refunded === 0 ? "completed" : "partially_refunded";
    return to === before && payment.dispute !== "lost" ? winDispute(payment) : refused(payment);
  }
  if (HELD.includes(status)) {
    if (to === "completed") return complete(payment, amount);
    return to === "failed" || to === "cancelled" ? become(payment, to) : refused(payment);
  }
  if (!OPEN.includes(status)) return refused(payment);
  if (to === "completed" && !is_captured_later) return complete(payment, amount);
  if (to === "authorized" && is_captured_later) return become(payment, to);
  if (to === "declined" || to === "failed") return become(payment, to);
  const from_pending = ["processing", "requires_action", "cancelled"];
  return status === "pending" && from_pending.includes(to) ? become(payment, to) : refused(payment);
}

/** The payment with the id of its newest refund, which the model does not know. */
export function nameNewestRefund(payment: Standing, id: string): Standing {
  const refunds = payment.refunds.map((refund, i, all) =>
    i === all.length - 1 ? { ...refund, id } : refund
  );
  return { ...payment, refunds };
}

/** The amount that a payment has added to the available balance. */
export function availableOf({ status, captured, refunded, disputed }: Standing): number {
  // A bank that returns a payment takes the whole amount, and its refunds stay.
  return status === "failed" ? -refunded : captured - refunded - disputed;
}
