/**
 * The decisions of advances, captures, cancels and authentications, for a payment of 1000 at
 * sequence 3: the exact change where a move is allowed, and elsewhere a refusal.
 * payment_model_test.ts has the states that only several moves reach.
 */

import assert from "node:assert/strict";
import { responseOnly } from "../../shared/domain/changes/change_builder.ts";
import { ApiError } from "../../shared/core/errors.ts";
import {
  DISPUTE_REASONS,
  FINAL_PAYMENT_STATUSES,
  METHOD_KINDS,
  PAYMENT_STATUSES,
} from "../../shared/core/vocabulary.ts";
import type { Payment } from "../../shared/schema/payment.ts";
import type { PaymentStatus } from "../../shared/schema/statuses.ts";
import { AdvancePaymentBody } from "../../shared/schema/payment_advance.ts";
import { decideAdvance, decideAuthenticate } from "../../shared/sandbox/advance.ts";
import { transactionHash } from "../../shared/sandbox/sandbox_replies.ts";
import { cancelOf, captureOf } from "../../shared/domain/payments/capture_and_cancel.ts";
import { refundOf } from "../../shared/domain/payments/refund_payment.ts";
import {
  advanceTo,
  BASE_URL,
  decided,
  MADE_AT,
  NOW,
  NOW_MS,
  paymentWith,
  requestContext,
  URLS,
} from "../support/domain/decided_change.ts";
import {
  assertMove,
  type Decide,
  type MoveCase,
  parsed,
  testBodies,
  testMoves,
  testRefusals,
} from "../support/domain/move_case.ts";

const context = requestContext();
/** Seven days after the authorization. */
const CAPTURE_BEFORE = new Date(NOW_MS + 7 * 86_400_000).toISOString();
const AUTHENTICATE = {
  type: "authenticate",
  url: `${BASE_URL}/api-v1-sandbox/payments/${paymentWith({}).id}/authenticate`,
} as const;

const advance = (to: PaymentStatus, return_code?: string): Decide => (payment) =>
  advanceTo(payment, to, context, return_code);
const capture = (amount?: number): Decide => (payment) =>
  decided(captureOf(payment, { amount }, context));
const refund = (amount?: number): Decide => (payment) =>
  decided(refundOf(payment, { amount }, context));
const cancel: Decide = (payment) => decided(cancelOf(payment, context));
const authenticate = (result: "success" | "failure"): Decide => (payment) =>
  decideAuthenticate(payment, result, context);

/** The effect of an advance. */
type Move = Pick<MoveCase, "events" | "ledger" | "refunds"> & { members?: Partial<Payment> };

const CAPTURE: Move = {
  ledger: ["capture processor>available 1000"],
  members: { amount_captured: 1000, completed_at: NOW, capture_before: null, next_action: null },
};
const CANCEL: Move = { members: { cancelled_at: NOW, capture_before: null } };
const DECLINE: Move = {
  members: {
    failure_code: "payment_declined",
    failure_message: "The card issuer declined the payment",
    advice: "use_another_method",
    next_action: null,
  },
};
const FAIL: Move = { members: { capture_before: null, next_action: null } };
const BANK_RETURN: Move = { ledger: ["capture_reversal available>processor 1000"] };
const refunded = (amount: number, status: PaymentStatus, amount_refunded: number): Move => ({
  events: ["refund.created", "refund.completed", `payment.${status}`],
  ledger: [`refund available>processor ${amount}`],
  refunds: [`completed ${amount}`],
  members: { amount_refunded },
});
const disputed = (amount_disputed: number): Move => ({
  events: ["dispute.created", "payment.chargeback"],
  ledger: [`chargeback available>chargebacks ${amount_disputed}`],
  members: { amount_disputed },
});

/** Every advance of some payment. A partially refunded payment has 600 of 1000 left. */
const ADVANCES: Record<string, Move> = {
  "pending>requires_action": { members: { next_action: AUTHENTICATE } },
  "pending>processing": {},
  "pending>completed": CAPTURE,
  "pending>declined": DECLINE,
  "pending>failed": FAIL,
  "pending>cancelled": CANCEL,
  "requires_action>completed": CAPTURE,
  "requires_action>declined": DECLINE,
  "requires_action>failed": FAIL,
  "processing>completed": CAPTURE,
  "processing>declined": DECLINE,
  "processing>failed": FAIL,
  "authorized>completed": CAPTURE,
  "authorized>failed": FAIL,
  "authorized>cancelled": CANCEL,
  "completed>partially_refunded": refunded(500, "partially_refunded", 500),
  "completed>refunded": refunded(1000, "refunded", 1000),
  "completed>chargeback": disputed(1000),
  "partially_refunded>refunded": refunded(600, "refunded", 1000),
  "partially_refunded>chargeback": disputed(600),
  "chargeback>completed": {
    events: ["dispute.won", "payment.completed"],
    ledger: ["chargeback_reversal chargebacks>available 1000"],
    members: { amount_disputed: 0 },
  },
};
/** The bank returns the whole amount, refunded or not. */
const BANK_RETURNS: Record<string, Move> = {
  "completed>failed": BANK_RETURN,
  "partially_refunded>failed": BANK_RETURN,
};
const AUTHORIZE: Move = { members: { capture_before: CAPTURE_BEFORE, next_action: null } };

/** A rail, or a card with manual capture. */
type RailCase = Payment["method_kind"] | "manual card";
const RAILS: readonly RailCase[] = [...METHOD_KINDS, "manual card"];
const BEFORE_CAPTURE: readonly string[] = ["pending", "requires_action", "processing"];
const RETURNED = {
  failure_code: "bank_return",
  failure_message: "The bank returned the payment",
  return_code: "R01",
} as const;
const FAILED = {
  failure_code: "processing_failed",
  failure_message: "The payment failed while it was processed",
} as const;
const FAILURES: Record<RailCase, Partial<Payment>> = {
  card: FAILED,
  "manual card": FAILED,
  sepa: RETURNED,
  swift: RETURNED,
  stablecoin: {
    failure_code: "onchain_reverted",
    failure_message: "The transaction was reverted on chain",
  },
};

function advanceOf(rail: RailCase, from: string, to: string): Move | undefined {
  const move = `${from}>${to}`;
  if (rail === "manual card" && BEFORE_CAPTURE.includes(from)) {
    if (to === "authorized") return AUTHORIZE;
    if (to === "completed") return undefined;
  }
  const is_bank = rail === "sepa" || rail === "swift";
  return (is_bank ? BANK_RETURNS[move] : undefined) ?? ADVANCES[move];
}

const WALLET = {
  address: "0x000000000000000000000000000000000000dEaD",
  network: "ethereum",
  asset: "USDC",
} as const;
const byWallet = (tx_hash: string | null): Partial<Payment> => ({
  method: { type: "stablecoin", wallet: { ...WALLET, tx_hash } },
});

/** A payment of a rail in a status. */
function paymentIn(status: PaymentStatus, rail: RailCase = "card"): Payment {
  const method_kind = rail === "manual card" ? "card" : rail;
  return paymentWith({
    status,
    method_kind,
    capability: `${method_kind}_payment`,
    ...(rail === "stablecoin" && byWallet(null)),
    ...(rail === "manual card" && { capture: "manual" }),
    ...(status === "requires_action" && { next_action: AUTHENTICATE }),
    ...(status === "authorized" && { capture: "manual", capture_before: CAPTURE_BEFORE }),
    ...(status === "completed" && { completed_at: MADE_AT }),
    ...(status === "partially_refunded" && { amount_refunded: 400, completed_at: MADE_AT }),
    ...(status === "refunded" && { amount_refunded: 1000, completed_at: MADE_AT }),
    ...(status === "chargeback" && { amount_disputed: 1000, completed_at: MADE_AT }),
  });
}

/** Asserts a refusal that names the status and the statuses that can follow. */
function assertRefused(payment: Payment, decide: Decide, allowed: readonly string[], name: string) {
  assert.throws(() => decide(payment), ({ code, details }: ApiError) => {
    assert.deepEqual(
      [code, details.current_status, (details.allowed as string[]).toSorted()],
      ["invalid_state", payment.status, allowed.toSorted()],
      name,
    );
    return true;
  });
}

for (const rail of RAILS) {
  for (const from of PAYMENT_STATUSES) {
    if (from === "authorized" && !rail.endsWith("card")) continue;
    Deno.test(`an advance of a ${rail} payment that is ${from}`, () => {
      const payment = paymentIn(from, rail);
      for (const to of PAYMENT_STATUSES) {
        const move = advanceOf(rail, from, to);
        if (from === to) {
          assert.equal(decideAdvance(payment, to, URLS, context), null);
        } else if (!move) {
          const allowed = PAYMENT_STATUSES.filter((status) => advanceOf(rail, from, status));
          assertRefused(payment, advance(to), allowed, to);
        } else {
          const has_hash = rail === "stablecoin" && to === "completed" && from !== "chargeback";
          const members = {
            status: to,
            ...move.members,
            ...(to === "failed" && FAILURES[rail]),
            ...(has_hash && byWallet(transactionHash(1000, "EUR", WALLET))),
          };
          assertMove({ payment, decide: advance(to), ...move, members });
        }
      }
    });
  }
}

/** Requests that move a payment, with the statuses in which each is allowed. */
const REQUESTS: [name: string, decide: Decide, allowed: string][] = [
  ["capture", capture(), "authorized"],
  ["capture of too much", capture(5000), "authorized"],
  ["cancel", cancel, "pending requires_action authorized"],
  ["refund", refund(), "completed partially_refunded"],
  ["refund of too much", refund(5000), "completed partially_refunded"],
  ["authentication", authenticate("success"), "requires_action"],
  ["failed authentication", authenticate("failure"), "requires_action"],
];
for (const [name, decide, allowed] of REQUESTS) {
  Deno.test(`a ${name} is refused from every status but ${allowed}`, () => {
    for (const from of PAYMENT_STATUSES.filter((status) => !allowed.split(" ").includes(status))) {
      const next = PAYMENT_STATUSES.filter((to) => advanceOf("card", from, to));
      // A cancel is allowed although an advance to it is not.
      const more = from === "requires_action" ? ["cancelled" as const] : [];
      assertRefused(paymentIn(from), decide, [...next, ...more], from);
    }
  });
}

const HELD = paymentIn("authorized");
const WAITING = paymentIn("requires_action");
const MANUAL = paymentWith({ ...WAITING, capture: "manual" });
const SEPA = paymentIn("completed", "sepa");
const DISPUTED = paymentIn("chargeback");
const captured = (amount: number) => ({
  ledger: [`capture processor>available ${amount}`],
  members: { ...CAPTURE.members, status: "completed", amount_captured: amount } as const,
});

testMoves([
  ...[undefined, 1000, 999, 1].map((amount): MoveCase => ({
    name: `capture ${amount ?? "the whole"}`,
    payment: HELD,
    decide: capture(amount),
    ...captured(amount ?? 1000),
  })),
  ...[paymentIn("pending"), WAITING, HELD].map((payment): MoveCase => ({
    name: `cancel ${payment.status}`,
    payment,
    decide: cancel,
    members: { ...CANCEL.members, status: "cancelled", next_action: null },
  })),
  { name: "authenticate", payment: WAITING, decide: authenticate("success"), ...captured(1000) },
  {
    name: "authenticate for a manual capture",
    payment: MANUAL,
    decide: authenticate("success"),
    members: { ...AUTHORIZE.members, status: "authorized" },
  },
  {
    name: "fail to authenticate",
    payment: WAITING,
    decide: authenticate("failure"),
    http: 402,
    members: {
      status: "declined",
      failure_code: "authentication_failed",
      failure_message: "The payer failed to authenticate",
      advice: "authenticate",
      next_action: null,
    },
  },
  {
    name: "bank return while a refund is pending",
    payment: paymentWith({ ...SEPA, amount_refunding: 1 }),
    decide: advance("failed", "AM04"),
    ...BANK_RETURN,
    members: { ...RETURNED, status: "failed", return_code: "AM04", amount_refunding: 1 },
  },
]);

testRefusals([
  ["capture too much", HELD, capture(1001), "invalid_parameter amount"],
  [
    "capture too much in minor units",
    HELD,
    (payment) => decided(captureOf(payment, { amount_minor: 1001 }, context)),
    "invalid_parameter amount_minor",
  ],
  [
    "return a card payment with a code",
    paymentIn("completed"),
    advance("failed", "AC04"),
    "invalid_parameter return_code",
  ],
]);

Deno.test("FINAL_PAYMENT_STATUSES are the statuses that nothing follows on any rail", () => {
  const final = PAYMENT_STATUSES.filter((from) =>
    PAYMENT_STATUSES.every((to) => RAILS.every((rail) => !advanceOf(rail, from, to)))
  );
  assert.deepEqual(final, [...FINAL_PAYMENT_STATUSES]);
});

Deno.test("captureOf() names the authorized amount if the capture is too high", () => {
  assert.throws(() => capture(1001)(HELD), {
    details: { param: "amount", amount_capturable: 1000 },
  });
});

Deno.test("decideAdvance() to chargeback gives the dispute its reason", () => {
  for (const reason of [undefined, ...DISPUTE_REASONS]) {
    const options = { reason };
    const change = decideAdvance(paymentIn("completed"), "chargeback", URLS, context, options)!;
    assert.equal(JSON.parse(change.disputes[0]!.body).reason, reason ?? "general");
  }
});

Deno.test("decideAdvance() of a dispute that has just ended expects the old sequence", () => {
  const change = decideAdvance(DISPUTED, "completed", URLS, context, { dispute: null })!;
  assert.deepEqual(change.expects, { id: DISPUTED.id, sequence: DISPUTED.sequence });
});

Deno.test("decideAdvance() refuses a sum of received amounts that JSON cannot hold", () => {
  for (const [method_kind, to] of [["sepa", "pending"], ["stablecoin", "processing"]] as const) {
    const sent = paymentWith({ method_kind, amount_received: Number.MAX_SAFE_INTEGER });
    assert.throws(
      () => decideAdvance(sent, to, URLS, context, { amount_received: 1 }),
      { code: "invalid_parameter", details: { param: "amount_received" } },
    );
  }
});

Deno.test("responseOnly() changes nothing and requires the sequence of the payment", () => {
  const response = { status: 409, body: "{}" };
  const payment = paymentWith({});
  assert.deepEqual(responseOnly(payment, response), {
    response,
    expects: { id: payment.id, sequence: 3 },
    payment: null,
    transfer: null,
    refunds: [],
    disputes: [],
    ledger: [],
    events: [],
    operations: [],
  });
});

testBodies("an advance", [
  [null, { to: "completed" }, { to: "chargeback", reason: "fraudulent" }],
  [null, { to: "failed", return_code: "AC04" }, { to: "processing", amount_received: 1 }],
  ["to", {}, { to: "done" }, { to: null }, { to: "COMPLETED" }, { to: ["completed"] }],
  ["reason", { to: "chargeback", reason: "late" }, { to: "refunded", reason: "general" }],
  ["amount_received", { to: "requires_action", amount_received: 1 }],
  ["return_code", ...["ac04", "AC04X"].map((return_code) => ({ to: "failed", return_code }))],
  ["return_code", { to: "refunded", return_code: "AC04" }],
], parsed(AdvancePaymentBody));
