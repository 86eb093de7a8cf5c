/** The words of the console for names of the API, and its judgement of a key. */

import assert from "node:assert/strict";
import type { EventType } from "../../client/mod.ts";
import { judgeKey, type KeyVerdict, maskedKey } from "../../console/session.ts";
import { eventTitle, eventTone, toneOf } from "../../console/words.ts";
import { generateApiKey } from "../../shared/core/api_key.ts";
import { EVENT_TYPES } from "../../shared/core/vocabulary.ts";

const EVENTS: [type: EventType, title: string, tone: string][] = [
  ["payment.created", "Payment created", "neutral"],
  ["payment.requires_action", "Authentication required", "warn"],
  ["payment.processing", "Processing", "neutral"],
  ["payment.completed", "Payment completed", "good"],
  ["payment.refunded", "Fully refunded", "neutral"],
  ["payment.chargeback", "Disputed by the payer", "bad"],
  ["refund.completed", "Refund completed", "good"],
  ["transfer.failed", "Transfer failed", "bad"],
  ["webhook_endpoint.disabled", "Webhook endpoint disabled", "bad"],
  ["ping", "Ping", "neutral"],
];

for (const [type, title, tone] of EVENTS) {
  Deno.test(`eventTitle() and eventTone() of ${type}: ${title}, ${tone}`, () => {
    assert.deepEqual([eventTitle(type), eventTone(type)], [title, tone]);
  });
}

Deno.test("eventTitle() is different for every event type", () => {
  assert.equal(new Set(EVENT_TYPES.map(eventTitle)).size, EVENT_TYPES.length);
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
