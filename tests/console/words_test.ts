/** The words of the console for names of the API, and its judgement of a key. */

import assert from "node:assert/strict";
import type { EventType } from "../../client/mod.ts";
import { judgeKey, type KeyVerdict, maskedKey } from "../../console/session.ts";
import { advanceText, eventTitle, eventTone, toneOf } from "../../console/words.ts";
import { generateApiKey } from "../../shared/core/api_key.ts";
import { EVENT_TYPES } from "../../shared/core/vocabulary.ts";

const EVENTS: [type: EventType, title: string, tone: string][] = [
  ["payment.created", "Payment created", "neutral"],
  ["payment.requires_action", "Authentication required", "warn"],
  ["payment.processing", "Processing", "neutral"],
  ["payment.authorized", "Payment authorized", "warn"],
  ["payment.completed", "Payment completed", "good"],
  ["payment.refunded", "Fully refunded", "neutral"],
  ["payment.chargeback", "Disputed by the payer", "bad"],
  ["refund.created", "Refund created", "neutral"],
  ["refund.completed", "Refund completed", "good"],
  ["refund.failed", "Refund failed", "bad"],
  ["dispute.created", "Dispute created", "neutral"],
  ["dispute.won", "Dispute won", "good"],
  ["dispute.lost", "Dispute lost", "bad"],
  ["transfer.failed", "Transfer failed", "bad"],
  ["webhook_endpoint.disabled", "Webhook endpoint disabled", "bad"],
  ["ping", "Ping", "neutral"],
];

for (const [type, title, tone] of EVENTS) {
  Deno.test(`eventTitle() and eventTone() of ${type}: ${title}, ${tone}`, () => {
    assert.deepEqual([eventTitle(type), eventTone(type)], [title, tone]);
  });
}

Deno.test("eventTitle() after a chargeback: a won dispute, with either status", () => {
  for (const type of ["payment.completed", "payment.partially_refunded"] as const) {
    assert.equal(eventTitle(type, "payment.chargeback"), "Chargeback reversed");
    assert.notEqual(eventTitle(type, "payment.created"), "Chargeback reversed");
  }
});

Deno.test("advanceText() depends on the status before", () => {
  assert.equal(advanceText("pending", "completed"), "The money has arrived");
  assert.equal(advanceText("authorized", "completed"), "The whole amount is captured");
  assert.equal(advanceText("chargeback", "completed"), "The merchant wins the dispute");
});

Deno.test("eventTitle() is different for every event type", () => {
  assert.equal(new Set(EVENT_TYPES.map((type) => eventTitle(type))).size, EVENT_TYPES.length);
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
