/**
 * Records of provider events: the part of a movement that is at the provider, events of transfers,
 * declined payments that are still open there, and the rows of a record.
 */

import assert from "node:assert/strict";
import { ChangeBuilder, movementRow } from "../../shared/domain/changes/change_builder.ts";
import { ResourceText } from "../../shared/domain/changes/resource_text.ts";
import { NO_PARTS } from "../../shared/domain/operations/apply_event.ts";
import { handled, rowsOf, unusableAccount } from "../../shared/domain/operations/event_record.ts";
import { beginRefund } from "../../shared/domain/payments/refund_payment.ts";
import type { ProviderEvent } from "../../shared/domain/providers/connector.ts";
import { bookedAtProvider } from "../../shared/domain/providers/effect.ts";
import type { Transfer } from "../../shared/schema/transfer.ts";
import type { MovementKind } from "../../shared/store/commit_rows.ts";
import {
  applyToSubject,
  type Effect,
  operationFor,
  providerEvent,
} from "../support/domain/applied_event.ts";
import { paymentWith, requestContext, transferWith } from "../support/domain/decided_change.ts";

/** The change of the balance at the provider by a movement of 10. */
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
    const about = { subject_id: "pay_1", refund_id: null, amount_minor: 10, currency: "EUR" };
    const movement = movementRow({ kind: kind as MovementKind, ...about }, requestContext());
    assert.equal(bookedAtProvider([movement]), expected);
  });
}

const CARD = paymentWith({ status: "processing", livemode: true, amount_captured: 0 });
const eventWith = ({ op = "authorize", state = "succeeded", ...more }: Partial<ProviderEvent>) =>
  providerEvent(op, state, more);

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
    const subject = transferWith({ status });
    const event = eventWith({ op: "transfer", ...members });
    const effect = applyToSubject({ ...NO_PARTS, subject }, event, 0, requestContext(true));
    assert.equal(effect.outcome, expected);
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
    const event = eventWith({ state: "declined", livemode: payment.livemode, ...more });
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
    handled(eventWith({ op }), change, applied, 0).refund_id;
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
  const operation = operationFor("authorize", CARD);
  const { reference } = unusableAccount(operation, "pac_1", "no", requestContext());
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

Deno.test("ResourceText finds the places of members behind quotes and brackets", () => {
  const before = { text: '"},\\"', list: [{ a: "]" }, {}], none: undefined, end: null };
  const after = { ...before, list: [], end: "x" };
  const [end, list] = new ResourceText(before).next(after, 2)!;
  assert.deepEqual([end, list], ["36,3,null", '27,2,[{"a":"]"},{}]']);
});
