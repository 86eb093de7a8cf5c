/**
 * The lifecycle by `advance`: from every status to every status, at each address, on each rail
 * (contract §2). An allowed move has exactly its events, ledger transactions and times. Any other
 * move is 409 and changes nothing.
 */

import assert from "node:assert/strict";
import type { TestService } from "../support/service/service.ts";
import { changesBetween, recordOf } from "../support/database/payment_records.ts";
import {
  ADVANCE_ADDRESSES,
  APPROVED,
  assertRefused,
  type Kind,
  KINDS,
  paymentIn,
  PAYMENTS,
  SANDBOX,
  serviceCase,
  STATUSES,
} from "../support/service/service_case.ts";

const MADE_AT = Date.parse("2026-05-01T10:00:00.000Z");
const MOVED_AT = Date.parse("2026-05-02T11:12:13.141Z");
const MOVED = "2026-05-02T11:12:13.141Z";
/** Seven days after the move. */
const CAPTURE_BEFORE = "2026-05-09T11:12:13.141Z";

/** The effect of a move: its events, its ledger transactions, and the members that change. */
interface Move {
  events: string[];
  ledger: string[];
  members?: Record<string, unknown>;
}

const DECLINED = { failure_code: "payment_declined", advice: "use_another_method" };
const CAPTURE: Move = {
  events: ["payment.completed"],
  ledger: ["capture processor>available 1000 EUR"],
  members: { completed_at: MOVED, amount_captured: 1000 },
};
const CANCEL: Move = {
  events: ["payment.cancelled"],
  ledger: [],
  members: { cancelled_at: MOVED },
};
const DECLINE: Move = { events: ["payment.declined"], ledger: [], members: DECLINED };
const FAIL: Move = { events: ["payment.failed"], ledger: [] };

/** Every move that an advance can make. A partially refunded payment has 600 of 1000 left. */
const MOVES: Record<string, Move> = {
  "pending>requires_action": { events: ["payment.requires_action"], ledger: [] },
  "pending>processing": { events: ["payment.processing"], ledger: [] },
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
  "authorized>completed": { ...CAPTURE, members: { ...CAPTURE.members, capture_before: null } },
  "authorized>failed": { ...FAIL, members: { capture_before: null } },
  "authorized>cancelled": { ...CANCEL, members: { ...CANCEL.members, capture_before: null } },
  "completed>partially_refunded": {
    events: ["refund.created", "refund.completed", "payment.partially_refunded"],
    ledger: ["refund available>processor 500 EUR"],
    members: { amount_refunded: 500 },
  },
  "completed>refunded": {
    events: ["refund.created", "refund.completed", "payment.refunded"],
    ledger: ["refund available>processor 1000 EUR"],
    members: { amount_refunded: 1000 },
  },
  "completed>chargeback": {
    events: ["dispute.created", "payment.chargeback"],
    ledger: ["chargeback available>chargebacks 1000 EUR"],
    members: { amount_disputed: 1000 },
  },
  "chargeback>completed": {
    events: ["dispute.won", "payment.completed"],
    ledger: ["chargeback_reversal chargebacks>available 1000 EUR"],
    members: { amount_disputed: 0 },
  },
  "partially_refunded>refunded": {
    events: ["refund.created", "refund.completed", "payment.refunded"],
    ledger: ["refund available>processor 600 EUR"],
    members: { amount_refunded: 1000 },
  },
  "partially_refunded>chargeback": {
    events: ["dispute.created", "payment.chargeback"],
    ledger: ["chargeback available>chargebacks 600 EUR"],
    members: { amount_disputed: 600 },
  },
};
/** The bank returns the whole amount. Only bank rails have these moves. */
const BANK_RETURNS: Record<string, Move> = {
  "completed>failed": {
    events: ["payment.failed"],
    ledger: ["capture_reversal available>processor 1000 EUR"],
  },
  "partially_refunded>failed": {
    events: ["payment.failed"],
    ledger: ["capture_reversal available>processor 1000 EUR"],
  },
};
/** With manual capture a payment is authorized before it is completed. */
const AUTHORIZE: Move = {
  events: ["payment.authorized"],
  ledger: [],
  members: { capture_before: CAPTURE_BEFORE },
};
const BEFORE_CAPTURE = ["pending", "requires_action", "processing"];

/** A kind of payment, or a card with manual capture. */
type Rail = Kind | "manual card";
const WITH_BANK: readonly Rail[] = ["sepa", "swift"];
const FAILURES: Record<Rail, { failure_code?: string; return_code: string | null }> = {
  card: { return_code: null },
  "manual card": { return_code: null },
  sepa: { failure_code: "bank_return", return_code: "R01" },
  swift: { failure_code: "bank_return", return_code: "R01" },
  stablecoin: { failure_code: "onchain_reverted", return_code: null },
};

function moveOf(rail: Rail, from: string, to: string): Move | undefined {
  const move = `${from}>${to}`;
  if (rail === "manual card" && BEFORE_CAPTURE.includes(from)) {
    if (to === "authorized") return AUTHORIZE;
    if (to === "completed") return undefined;
  }
  return WITH_BANK.includes(rail) ? BANK_RETURNS[move] ?? MOVES[move] : MOVES[move];
}

/** The statuses from which the test moves payments of a rail. */
function startsOf(rail: Rail): string[] {
  if (rail === "manual card") return [...BEFORE_CAPTURE, "authorized"];
  return STATUSES.filter((status) => status !== "authorized");
}

for (const [i, address] of ADVANCE_ADDRESSES.entries()) {
  const shown = address("{id}");
  // The rules do not differ by address: the first address gets all moves, the others those of a
  // pending card payment.
  for (const rail of i === 0 ? [...KINDS, "manual card" as const] : ["card" as const]) {
    serviceCase(`POST ${shown} moves a ${rail} payment`, async (t, service) => {
      for (const from of i === 0 ? startsOf(rail) : ["pending"]) {
        for (const to of STATUSES) {
          const move = moveOf(rail, from, to);
          const result = from === to ? "stays" : move ? "moves" : "409";
          await t.step(`${from} → ${to}: ${result}`, () => check(service, address, rail, from, to));
        }
      }
    });
  }
}

async function check(
  service: TestService,
  address: (id: string) => string,
  rail: Rail,
  from: string,
  to: string,
): Promise<void> {
  service.trySetClock(MADE_AT);
  const payment = await paymentIn(
    service,
    from,
    rail === "manual card" ? { ...APPROVED.card, capture: "manual" } : APPROVED[rail],
  );
  const before = await recordOf(service, payment.id);
  const is_set = service.trySetClock(MOVED_AT);
  const response = await service.call("POST", address(payment.id), { body: { to } });
  const after = await recordOf(service, payment.id);
  const move = moveOf(rail, from, to);
  if (from === to) {
    assert.deepEqual([response.status, response.body], [200, payment]);
    assert.equal(after.text, before.text);
  } else if (!move) {
    assertRefused(response, 409, "invalid_state");
    const { current_status, allowed, type } = response.body.error;
    assert.deepEqual([current_status, type], [from, "invalid_request"]);
    assert.deepEqual(
      allowed.toSorted(),
      STATUSES.filter((status) => moveOf(rail, from, status)).toSorted(),
    );
    assert.equal(after.text, before.text);
  } else {
    assert.equal(response.status, 200, response.text);
    const { events, sequences, ledger } = changesBetween(before, after);
    assert.deepEqual({ events, ledger }, { events: move.events, ledger: move.ledger });
    assert.deepEqual(sequences, sequences.map((_, i) => i + 1));
    const moved = is_set ? MOVED : response.body.updated_at;
    assert.deepEqual(response.body, {
      ...payment,
      status: to,
      sequence: sequences.length,
      updated_at: moved,
      ...expectedEnd(response.body, rail, to),
      ...JSON.parse(
        JSON.stringify(move.members ?? {}).replaceAll(MOVED, moved)
          .replaceAll(CAPTURE_BEFORE, sevenDaysAfter(moved)),
      ),
    });
    assert.equal(after.body, response.text);
    assert.deepEqual(after.events.at(-1)!.payload.data.object, response.body);
    const stored = await service.call("GET", `${PAYMENTS}/${payment.id}`);
    assert.equal(stored.text, response.text);
  }
}

function sevenDaysAfter(time: string): string {
  return new Date(Date.parse(time) + 7 * 86_400_000).toISOString();
}

/**
 * Members that depend only on the status after the move. Texts for people are taken from the
 * response.
 */
// deno-lint-ignore no-explicit-any
function expectedEnd(shown: any, rail: Rail, to: string): Record<string, unknown> {
  if (to === "requires_action") {
    const { url } = shown.next_action;
    assert.ok(url.endsWith(`${SANDBOX}/payments/${shown.id}/authenticate`), url);
    return { next_action: { type: "authenticate", url } };
  }
  const cleared = ["authorized", "completed", "declined", "failed", "cancelled"].includes(to)
    ? { next_action: null }
    : {};
  if (to === "completed" && rail === "stablecoin") {
    assert.match(shown.method.wallet.tx_hash, /^0x[0-9a-f]{64}$/);
    return { ...cleared, method: shown.method };
  }
  if (to !== "failed" && to !== "declined") return cleared;
  const { failure_message, failure_code } = shown;
  assert.ok(failure_message.length > 0 && failure_code.length > 0);
  const { return_code = null, ...code } = to === "failed" ? FAILURES[rail] : DECLINED as never;
  return { ...cleared, failure_message, failure_code, return_code, ...(code as object) };
}

serviceCase("POST /payments/{id}/advance rounds half of an amount down", async (t, service) => {
  const cases: [amount: number, half: number | "409"][] = [[1, "409"], [2, 1], [3, 1], [999, 499]];
  for (const [amount, half] of cases) {
    await t.step(`${amount} → ${half}`, async () => {
      const { body } = await service.make({ amount_minor: amount, outcome: "success" });
      const before = await recordOf(service, body.id);
      const to = { to: "partially_refunded" };
      const response = await service.call("POST", ADVANCE_ADDRESSES[0](body.id), { body: to });
      const after = await recordOf(service, body.id);
      if (half === "409") {
        assertRefused(response, 409, "invalid_state");
        assert.ok(!response.body.error.allowed.includes("partially_refunded"));
        return assert.equal(after.text, before.text);
      }
      assert.equal(response.body.amount_refunded, half);
      assert.deepEqual(changesBetween(before, after).ledger, [
        `refund available>processor ${half} EUR`,
      ]);
    });
  }
});

serviceCase("POST /payments/{id}/advance refuses other bodies", async (t, service) => {
  const { body: payment } = await service.make({ outcome: "pending" });
  const before = await recordOf(service, payment.id);
  for (const body of ["{}", '{"to":"done"}', '{"to":null}', '{"to":"COMPLETED"}', '{"to":["x"]}']) {
    await t.step(body, async () => {
      for (const address of ADVANCE_ADDRESSES) {
        const response = await service.call("POST", address(payment.id), { body });
        assertRefused(response, 400, "invalid_parameter", "to");
      }
      assert.equal((await recordOf(service, payment.id)).text, before.text);
    });
  }
});
