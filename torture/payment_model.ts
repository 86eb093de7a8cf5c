/**
 * A model of payments and transfers, written from the interface and the contract (§2, §3). It shares
 * no code with the product, so a wrong rule has to be wrong twice. The model test and the torture's
 * audit use it.
 */

/** A payment in the model. Amounts are minor units. */
export interface Standing {
  status: string;
  kind: string;
  amount: number;
  refunded: number;
  /** Events so far. */
  sequence: number;
}

/** A move of an existing payment. */
export type Move =
  | { do: "cancel" }
  /** Null for the rest. */
  | { do: "refund"; amount: number | null }
  | { do: "advance"; to: string }
  | { do: "authenticate"; result: "success" | "failure" };

/** The expected answer to a request. */
export interface Expected<T> {
  http: number;
  /** The error code; null if the request succeeds. */
  code: string | null;
  /** The state after the request. */
  next: T;
  /** The new events. */
  events: string[];
}

/** Every status of a payment. */
export const STATUSES = [
  "pending",
  "requires_action",
  "processing",
  "completed",
  "declined",
  "failed",
  "cancelled",
  "partially_refunded",
  "refunded",
  "chargeback",
] as const;

/** The result of each test value in the sandbox, by the names that plans use. */
export const INSTRUMENTS: Readonly<
  Record<string, { body: Record<string, unknown>; kind: string; status: string; code?: string }>
> = {
  none: { body: {}, kind: "card", status: "pending" },
  card: { body: { card: cardOf("4242424242424242") }, kind: "card", status: "completed" },
  mastercard: { body: { card: cardOf("5555555555554444") }, kind: "card", status: "completed" },
  card_declined: {
    body: { card: cardOf("4000000000000002") },
    kind: "card",
    status: "declined",
    code: "payment_declined",
  },
  card_no_funds: {
    body: { card: cardOf("4000000000009995") },
    kind: "card",
    status: "declined",
    code: "insufficient_funds",
  },
  card_aml: {
    body: { card: cardOf("4100000000000019") },
    kind: "card",
    status: "declined",
    code: "aml_blocked",
  },
  card_3ds: { body: { card: cardOf("4000002500003155") }, kind: "card", status: "requires_action" },
  sepa: { body: { iban: "DE89370400440532013000" }, kind: "sepa", status: "completed" },
  sepa_returned: { body: { iban: "DE00000000000000000099" }, kind: "sepa", status: "failed" },
  sepa_manual: {
    body: { iban: "DE89370400440532013000", settlement: "manual" },
    kind: "sepa",
    status: "pending",
  },
  swift: { body: { iban: "GB82WEST12345698765432" }, kind: "swift", status: "completed" },
  swift_manual: {
    body: { iban: "GB82WEST12345698765432", settlement: "manual" },
    kind: "swift",
    status: "pending",
  },
  wallet: {
    body: { wallet: "0x000000000000000000000000000000000000dEaD" },
    kind: "stablecoin",
    status: "completed",
  },
  wallet_reverted: {
    body: { wallet: "0x0000000000000000000000000000000000000BAD" },
    kind: "stablecoin",
    status: "failed",
  },
  wallet_manual: {
    body: { wallet: "0x000000000000000000000000000000000000dEaD", settlement: "manual" },
    kind: "stablecoin",
    status: "pending",
  },
};

/** The status after each forced outcome. */
export const OUTCOMES: Readonly<Record<string, string>> = {
  success: "completed",
  declined: "declined",
  pending: "pending",
  refunded: "refunded",
  chargeback: "chargeback",
};

/** Events after `payment.created`, by the status of the new payment. */
const FIRST_EVENTS: Readonly<Record<string, string[]>> = {
  pending: [],
  requires_action: ["payment.requires_action"],
  completed: ["payment.completed"],
  declined: ["payment.declined"],
  failed: ["payment.failed"],
  refunded: ["payment.completed", "refund.created", "refund.completed", "payment.refunded"],
  chargeback: ["payment.completed", "payment.chargeback"],
};

/** The expected answer to a create. An outcome overrides the instrument. */
export function expectCreate(
  instrument: string,
  outcome: string | null,
  amount: number,
  is_sandbox: boolean,
): Expected<Standing> {
  const known = INSTRUMENTS[instrument]!;
  const status = outcome === null ? known.status : OUTCOMES[outcome]!;
  const code = status !== "declined" ? null : outcome === null ? known.code! : "payment_declined";
  const events = ["payment.created", ...FIRST_EVENTS[status]!];
  const next = {
    status,
    kind: known.kind,
    amount,
    refunded: status === "refunded" ? amount : 0,
    sequence: events.length,
  };
  return code === null || is_sandbox
    ? { http: 201, code: null, next, events }
    : { http: 402, code, next, events };
}

/** The expected answer to a move of a payment. */
export function expectMove(payment: Standing, move: Move): Expected<Standing> {
  const { status, amount, refunded, kind } = payment;
  const rest = amount - refunded;
  const refused: Expected<Standing> = {
    http: 409,
    code: "invalid_state",
    next: payment,
    events: [],
  };
  const go = (http: number, to: string, more: Partial<Expected<Standing>> = {}, given = 0) => {
    const refund_events = given > 0 ? ["refund.created", "refund.completed"] : [];
    const events = [...refund_events, `payment.${to}`];
    const sequence = payment.sequence + events.length;
    const next = { ...payment, status: to, refunded: refunded + given, sequence };
    return { http, code: null, next, events, ...more };
  };
  const give = (http: number, given: number) =>
    go(http, given === rest ? "refunded" : "partially_refunded", {}, given);
  const is_captured = status === "completed" || status === "partially_refunded";
  switch (move.do) {
    case "cancel":
      return ["pending", "requires_action"].includes(status) ? go(200, "cancelled") : refused;
    case "refund":
      if (!is_captured) return refused;
      if ((move.amount ?? 0) > rest) {
        return { http: 400, code: "invalid_parameter", next: payment, events: [] };
      }
      return give(201, move.amount ?? rest);
    case "authenticate":
      if (status !== "requires_action") return refused;
      return move.result === "success"
        ? go(200, "completed")
        : go(402, "declined", { code: "authentication_failed" });
    case "advance": {
      const { to } = move;
      if (to === status) return { http: 200, code: null, next: payment, events: [] };
      if (is_captured) {
        if (to === "chargeback") return go(200, to);
        if (to === "refunded") return give(200, rest);
        if (to === "partially_refunded" && status === "completed" && rest > 1) {
          return give(200, Math.floor(rest / 2));
        }
        const is_bank = kind === "sepa" || kind === "swift";
        return to === "failed" && status === "completed" && is_bank ? go(200, to) : refused;
      }
      const is_open = ["pending", "requires_action", "processing"].includes(status);
      if (is_open && ["completed", "declined", "failed"].includes(to)) return go(200, to);
      const from_pending = ["processing", "requires_action", "cancelled"];
      return status === "pending" && from_pending.includes(to) ? go(200, to) : refused;
    }
  }
}

/** A transfer in the model. */
export interface TransferStanding {
  status: string;
  amount: number;
  sequence: number;
}

/** The expected answer to a new transfer with a sufficient balance. */
export function expectTransfer(
  destination: "approved" | "returned",
  is_manual: boolean,
  amount: number,
): Expected<TransferStanding> {
  const status = is_manual ? "pending" : destination === "approved" ? "completed" : "failed";
  const events = ["transfer.created", ...(is_manual ? [] : [`transfer.${status}`])];
  return { http: 201, code: null, next: { status, amount, sequence: events.length }, events };
}

/** The expected answer to a move of a transfer. */
export function expectTransferMove(
  transfer: TransferStanding,
  move: { do: "cancel" } | { do: "advance"; to: string },
): Expected<TransferStanding> {
  const to = move.do === "cancel" ? "cancelled" : move.to;
  if (move.do === "advance" && to === transfer.status) {
    return { http: 200, code: null, next: transfer, events: [] };
  }
  const ends = ["completed", "failed", "cancelled"];
  if (transfer.status !== "pending" || !ends.includes(to)) {
    return { http: 409, code: "invalid_state", next: transfer, events: [] };
  }
  const next = { ...transfer, status: to, sequence: transfer.sequence + 1 };
  return { http: 200, code: null, next, events: [`transfer.${to}`] };
}

function cardOf(number: string): Record<string, unknown> {
  return { number, exp_month: 12, exp_year: 2034, cvc: "123" };
}
