/** The words of the console for names of the API, and its judgement of a key. */

import assert from "node:assert/strict";
import type { EventType, PaymentStatus } from "../../packages/client/mod.ts";
import { judgeKey, type KeyVerdict, maskedKey } from "../../apps/console/data/session.ts";
import { advanceText, eventNote, eventTone, toneOf } from "../../apps/console/data/words.ts";
import { generateApiKey } from "../../shared/core/api_key.ts";
import { EVENT_TYPES } from "../../shared/core/vocabulary.ts";

const EVENTS: [type: EventType, note: string | null, tone: string][] = [
  ["payment.created", null, "neutral"],
  ["payment.requires_action", "Authentication required", "warn"],
  ["payment.processing", null, "neutral"],
  ["payment.authorized", null, "warn"],
  ["payment.completed", null, "good"],
  ["payment.partially_refunded", null, "neutral"],
  ["payment.refunded", "Fully refunded", "neutral"],
  ["payment.chargeback", "Disputed by the payer", "bad"],
  ["refund.created", null, "neutral"],
  ["refund.completed", null, "good"],
  ["refund.failed", null, "bad"],
  ["dispute.created", null, "neutral"],
  ["dispute.won", null, "good"],
  ["dispute.lost", null, "bad"],
  ["transfer.failed", null, "bad"],
  ["webhook_endpoint.disabled", null, "bad"],
  ["ping", null, "neutral"],
];

for (const [type, note, tone] of EVENTS) {
  Deno.test(`eventNote() and eventTone() of ${type}: ${note}, ${tone}`, () => {
    assert.deepEqual([eventNote(type), eventTone(type)], [note, tone]);
  });
}

Deno.test("eventNote() after a chargeback: a won dispute, with either status", () => {
  for (const type of ["payment.completed", "payment.partially_refunded"] as const) {
    assert.equal(eventNote(type, "payment.chargeback"), "Chargeback reversed");
    assert.equal(eventNote(type, "payment.created"), null);
  }
});

Deno.test("advanceText() depends on the status before", () => {
  const card = (status: PaymentStatus) =>
    advanceText({ status, method_kind: "card", amount_received: null }, "completed");
  assert.equal(card("pending"), "The money has arrived");
  assert.equal(card("authorized"), "The whole amount is captured");
  assert.equal(card("chargeback"), "The merchant wins the dispute");
});

Deno.test("advanceText() of a payment to an address tells of the chain until it is completed", () => {
  const sent = (status: PaymentStatus, to: PaymentStatus) =>
    advanceText({ status, method_kind: "stablecoin", amount_received: 0 }, to);
  assert.equal(sent("pending", "completed"), "The whole amount is final");
  assert.equal(sent("completed", "refunded"), "All of the rest is refunded");
});

Deno.test("eventNote() repeats the words of no event type", () => {
  for (const type of EVENT_TYPES) {
    const note = eventNote(type)?.toLowerCase().replaceAll(" ", "_");
    assert.ok(note === undefined || !type.endsWith(note), type);
  }
});

Deno.test("toneOf() a status of a newer service: off", () => {
  assert.equal(toneOf("suspended" as "pending"), "off");
  assert.equal(toneOf("delivered"), "good");
});

const KEYS: [text: string, verdict: KeyVerdict][] = [
  [generateApiKey("test"), "test"],
  [generateApiKey("test", "acme"), "test"],
  [generateApiKey("live"), "live"],
  [generateApiKey("live", "acme"), "live"],
  [`Bearer ${generateApiKey("live")}`, "live"],
  ["sk_live_", "live"],
  ["SK_LIVE_1", "live"],
  [generateApiKey("test").slice(0, -1), "malformed"],
  [`${generateApiKey("test")}x`, "malformed"],
  [`${generateApiKey("test")}\n${generateApiKey("live")}`, "live"],
  ["", "malformed"],
  ["test", "malformed"],
];

for (const [text, verdict] of KEYS) {
  Deno.test(`judgeKey() ${JSON.stringify(text.slice(0, 14))}… of ${text.length}: ${verdict}`, () => {
    assert.equal(judgeKey(text), verdict);
  });
}

Deno.test("maskedKey() shows prefix and last four", () => {
  const key = generateApiKey("test", "acme");
  assert.equal(maskedKey(key), `acme_test_…${key.slice(-4)}`);
});
