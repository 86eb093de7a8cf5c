/**
 * What results of providers leave behind: the part of a movement that is at the provider, replies
 * that are refused or not known, provider events of transfers, and the rows of a record.
 */

import assert from "node:assert/strict";
import { ChangeBuilder } from "../../shared/domain/changes/change_builder.ts";
import { ResourceText } from "../../shared/domain/changes/resource_text.ts";
import { NO_PARTS } from "../../shared/domain/operations/apply_event.ts";
import { decideResult } from "../../shared/domain/operations/decide_result.ts";
import { handled, rowsOf, unusableAccount } from "../../shared/domain/operations/event_record.ts";
import { beginRefund } from "../../shared/domain/payments/refund_payment.ts";
import type {
  Operation,
  ProviderEvent,
  ProviderReply,
} from "../../shared/domain/providers/connector.ts";
import { bookedAtProvider } from "../../shared/domain/providers/effect.ts";
import { eventOf } from "../../shared/domain/providers/operation.ts";
import type { Transfer } from "../../shared/schema/transfer.ts";
import type { MovementKind, MovementRow } from "../../shared/store/commit_rows.ts";
import { isCheap, isPlain, type PageRequest } from "../../shared/store/page_request.ts";
import { FIRST_ATTEMPT } from "../support/connectors/stripe_case.ts";
import { applyToSubject, type Effect } from "../support/domain/applied_event.ts";
import { NOW_MS, paymentWith, requestContext } from "../support/domain/decided_change.ts";

/** What a movement of 10 adds to the balance at the provider. */
const AT_PROVIDER: Record<MovementKind, number> = {
  capture: 10,
  capture_reversal: -10,
  refund: -10,
  refund_reversal: 10,
  chargeback: -10,
  chargeback_reversal: 10,
  fee: -10,
  fee_reversal: 10,
  settlement: -10,
  settlement_reversal: 10,
  unmatched: 10,
  unmatched_reversal: -10,
  reserve: -10,
  reserve_reversal: 10,
  // The money of a transfer leaves when it is completed, and comes back when it is returned.
  transfer: 0,
  transfer_completed: -10,
  transfer_reversed: 0,
  transfer_returned: 10,
};
for (const [kind, expected] of Object.entries(AT_PROVIDER)) {
  Deno.test(`bookedAtProvider() of a ${kind} of 10 is ${expected}`, () => {
    assert.equal(bookedAtProvider([{ kind, amount_minor: 10 } as MovementRow]), expected);
  });
}

const TRANSFER: Transfer = {
  id: `tr_${"2".repeat(26)}`,
  object: "transfer",
  status: "pending",
  amount: 1000,
  amount_minor: 1000,
  currency: "EUR",
  destination: { type: "iban", iban: { country: "DE", last4: "3000" } },
  description: null,
  metadata: {},
  speed: "standard",
  payee_check: null,
  failure_code: null,
  failure_message: null,
  return_code: null,
  livemode: true,
  sequence: 1,
  created_at: "2026-01-02T03:04:05.006Z",
  updated_at: "2026-01-02T03:04:05.006Z",
  completed_at: null,
  cancelled_at: null,
};

function operation(op: Operation["op"], subject: Operation["subject"], age_ms = 0): Operation {
  return {
    id: `pc_${"1".repeat(26)}`,
    environment_id: `env_${"1".repeat(26)}`,
    op,
    subject_id: subject.id,
    subject,
    refund_id: null,
    refund: null,
    dispute: null,
    amount_minor: subject.amount_minor,
    currency: subject.currency,
    request: { token: null },
    provider_reference: "pi_1",
    ...FIRST_ATTEMPT,
    created_at: new Date(NOW_MS - age_ms).toISOString(),
    decline_is_error: true,
  };
}

const CARD = paymentWith({ status: "processing", livemode: true, amount_captured: 0 });
const eventAbout = (subject: Operation["subject"], members: Partial<ProviderEvent>) => ({
  ...eventOf(operation("authorize", subject), "succeeded", {
    provider_reference: "pi_1",
    ...members,
  }),
  account_id: "pac_1",
});

/** [status of the transfer, members of the event, expected outcome] */
const TRANSFER_EVENTS: [Transfer["status"], Partial<ProviderEvent>, Effect["outcome"]][] = [
  ["pending", { state: "failed" }, "applied"],
  ["completed", { state: "failed" }, "ignored"],
  ["completed", { state: "returned" }, "applied"],
  ["failed", { state: "returned" }, "ignored"],
  ["failed", { state: "succeeded" }, "ignored"],
  // The money has left after all: a person decides.
  ["failed", { state: "succeeded", chain: { tx_hash: "0x1" } }, "unmatched"],
  ["pending", { op: "payee_check", bank: { payee_check: "match" } }, "applied"],
  ["pending", { op: "payee_check" }, "exception"],
  ["completed", { op: "payee_check", bank: { payee_check: "match" } }, "ignored"],
];
for (const [status, members, expected] of TRANSFER_EVENTS) {
  Deno.test(`applyEvent() ${JSON.stringify(members)} to a ${status} transfer: ${expected}`, () => {
    const subject = { ...TRANSFER, status };
    const event = eventAbout(subject, { op: "transfer", ...members });
    const effect = applyToSubject({ ...NO_PARTS, subject }, event, 0, requestContext(true));
    assert.equal(effect.outcome, expected);
  });
}

const HOUR_MS = 3_600_000;
/** [reply, age of the operation, its state afterwards] */
const UNKNOWN: [ProviderReply, age_ms: number, "pending" | "operator"][] = [
  [{ absent: true }, HOUR_MS, "pending"],
  [{ absent: true }, HOUR_MS + 1, "operator"],
  [{ unknown: "timeout", may_repeat: true }, HOUR_MS + 1, "pending"],
  [{ unknown: "timeout", may_repeat: true }, 7 * 24 * HOUR_MS, "pending"],
  [{ unknown: "timeout", may_repeat: true }, 7 * 24 * HOUR_MS + 1, "operator"],
];
for (const [reply, age_ms, state] of UNKNOWN) {
  Deno.test(`decideResult() of ${JSON.stringify(reply)} after ${age_ms} ms: ${state}`, () => {
    const { record } = decideResult(
      operation("authorize", CARD, age_ms),
      reply,
      requestContext(true),
    );
    assert.equal(record.operation!.state, state);
  });
}

for (
  const [subject, param, has_payment] of [
    [CARD, "card.token", true],
    [CARD, undefined, true],
    [TRANSFER, undefined, false],
  ] as const
) {
  Deno.test(`decideResult() of a refused ${subject.object}: the field ${param} is told`, () => {
    const op = subject === CARD ? "authorize" : "transfer";
    const refused: ProviderReply = {
      refused: "provider_refused",
      message: "No",
      ...(param && { param }),
    };
    const { response } = decideResult(operation(op, subject), refused, requestContext(true));
    const { error } = JSON.parse(response.body);
    assert.equal(error.param, param);
    assert.equal("payment" in error, has_payment);
  });
}

/** [members of a live payment, members of the event, whether the provider is told to end it] */
const DECLINES: [string, Parameters<typeof paymentWith>[0], Partial<ProviderEvent>, boolean][] = [
  ["a card", {}, {}, true],
  ["a card, reported by the operator", {}, { source: "operator" }, false],
  ["a card without a reference", {}, { provider_reference: null }, false],
  ["SEPA, which nobody pays in another way", { method_kind: "sepa" }, {}, false],
  ["a test payment", { livemode: false }, {}, false],
];
for (const [name, members, more, expected] of DECLINES) {
  Deno.test(`applyEvent() of a decline by ${name}: ${expected ? "" : "not "}ended there`, () => {
    const payment = { ...CARD, ...members };
    const event = eventAbout(payment, { state: "declined", livemode: payment.livemode, ...more });
    const effect = applyToSubject(
      { ...NO_PARTS, subject: payment },
      event,
      0,
      requestContext(payment.livemode),
    );
    assert.ok(effect.outcome === "applied");
    const ops = effect.change.operations.map(({ op, delay_ms }) => [op, delay_ms]);
    assert.deepEqual(ops, expected ? [["abandon", 0]] : []);
  });
}

Deno.test("handled() names the new refund of an event about a refund, and of no other", () => {
  const context = requestContext(true);
  const change = new ChangeBuilder(paymentWith({ status: "completed", livemode: true }), context);
  const refund = beginRefund(change, 100, {});
  const applied = {
    effect: { outcome: "applied", exception: null } as const,
    booked_minor: 0,
    expected: {},
  };
  const idOf = (op: ProviderEvent["op"]) =>
    handled(eventAbout(change.subject, { op, refund_id: null }), change, applied, 0).refund_id;
  assert.equal(idOf("refund"), refund.id);
  assert.equal(idOf("dispute"), null);
});

Deno.test("rowsOf() of a change without rows: null, unless the record depends on the resource", () => {
  const change = new ChangeBuilder(CARD, requestContext(true));
  assert.equal(rowsOf(change, [], {}), null);
  assert.deepEqual(rowsOf(change, [], { reports: 1 })!.expects, {
    id: CARD.id,
    sequence: CARD.sequence,
    reports: 1,
  });
});

Deno.test("unusableAccount() is one event a day", () => {
  const { reference } = unusableAccount(
    operation("authorize", CARD),
    "pac_1",
    "no",
    requestContext(),
  );
  assert.match(reference, /^pac_1:unusable:2026-02-03$/);
});

Deno.test("ResourceText stores the whole text before one with characters of two units", () => {
  const before = { a: 1, description: "😀" };
  assert.deepEqual(new ResourceText(before).next({ ...before, a: 2 }, 2), [
    `0,0,${JSON.stringify(before)}`,
  ]);
  const plain = { a: 1, description: "é" };
  assert.deepEqual(new ResourceText(plain).next({ ...plain, a: 2 }, 2), ["6,1,1"]);
});

/** [kind, filters, whether pages share a statement, whether they read only what they show] */
const PAGES: [PageRequest["kind"], Record<string, string>, plain: boolean, cheap: boolean][] = [
  ["payments", {}, true, true],
  ["payments", { status: "pending" }, false, true],
  ["payments", { status: "completed" }, false, false],
  ["payments", { currency: "EUR" }, false, false],
  ["payments", { reference: "1", id_from: "pay_" }, false, true],
  ["payments", { reference: "1", currency: "EUR" }, false, false],
  ["refunds", {}, false, true],
  ["refunds", { status: "pending" }, false, false],
  ["requests", { status: "200", method: "GET" }, false, true],
];
for (const [kind, filters, plain, cheap] of PAGES) {
  Deno.test(`a page of ${kind} by ${JSON.stringify(filters)}: plain ${plain}, cheap ${cheap}`, () => {
    const page = { kind, filters, limit: 10, starting_after: null };
    assert.deepEqual([isPlain(page), isCheap(page)], [plain, cheap]);
  });
}
Deno.test("a page of the payments of a parent is not plain", () => {
  const page = { kind: "payments" as const, filters: {}, limit: 10, starting_after: null };
  assert.equal(isPlain({ ...page, parent_id: "pay_1" }), false);
});
