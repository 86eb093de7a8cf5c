/**
 * The choices in the console are those of the service: test values, outcomes, event types. Also the
 * check and the mask of a key.
 */

import assert from "node:assert/strict";
import { EVENT_TYPES } from "../../console/event_types.ts";
import { judgeKey, type KeyVerdict, maskedKey } from "../../console/session.ts";
import { CARDS, IBANS, METHOD_KINDS, OUTCOMES, WALLETS } from "../../console/test_values.ts";
import { generateApiKey } from "../../shared/core/api_key.ts";
import { TEST_CARDS, testIban, testWallet } from "../../shared/domain/providers/test_values.ts";
import * as payment_schema from "../../shared/schema/payment.ts";
import { EVENT_TYPES as SCHEMA_EVENT_TYPES } from "../../shared/schema/event_type.ts";

Deno.test("CARDS are the published test cards", () => {
  assert.deepEqual(
    CARDS.map(({ value }) => value.replaceAll(" ", "")).sort(),
    [...TEST_CARDS.keys()].sort(),
  );
});

Deno.test("IBANS and WALLETS are published test values, with their rail", () => {
  for (const { value, rail } of IBANS) assert.equal(testIban(value)?.kind, rail, value);
  for (const { value } of WALLETS) assert.ok(testWallet(value), value);
});

Deno.test("OUTCOMES, METHOD_KINDS and EVENT_TYPES equal those of the schema", () => {
  const values = OUTCOMES.map(({ value }) => value);
  assert.deepEqual(values.sort(), [...payment_schema.OUTCOMES].sort());
  assert.deepEqual(METHOD_KINDS.map(([kind]) => kind), [...payment_schema.METHOD_KINDS]);
  assert.deepEqual(EVENT_TYPES, SCHEMA_EVENT_TYPES);
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
