/**
 * verifyWebhook() accepts no header that an attacker without the secret can write, and throws only
 * its own error (security.md, forged deliveries). The message of a failure has the seed; `SEED`
 * sets it.
 */

import assert from "node:assert/strict";
import fc from "fast-check";
import {
  signWebhook,
  verifyWebhook,
  WebhookVerificationError,
} from "../../packages/client/webhook_signature.ts";

const HEADERS = 10_000;
const SEED = Number(Deno.env.get("SEED") ?? Date.now() % 2 ** 31);
const SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const OTHER_SECRET = "whsec_ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8=";
const T = 1_767_225_600;
const BODY = '{"id":"evt_1","object":"event"}';

const header_of_other_secret = await signWebhook({
  body: BODY,
  secret: OTHER_SECRET,
  timestamp_seconds: T,
});
const header_of_other_body = await signWebhook({
  body: BODY.replace("1", "2"),
  secret: SECRET,
  timestamp_seconds: T,
});

const hex = fc.string({
  unit: fc.constantFrom(..."0123456789abcdef"),
  minLength: 62,
  maxLength: 66,
});
const timestamp = fc.oneof(
  fc.integer({ min: T - 310, max: T + 310 }).map(String),
  fc.double().map(String),
  fc.string({ unit: fc.constantFrom(..."0123456789+-. eE"), maxLength: 14 }),
);
/** Mostly well-formed parts, so that many headers reach the comparison. */
const part = fc.oneof(
  { weight: 3, arbitrary: timestamp.map((value) => `t=${value}`) },
  { weight: 5, arbitrary: hex.map((value) => `v1=${value}`) },
  { weight: 1, arbitrary: hex.map((value) => `v1=${value.toUpperCase()}`) },
  { weight: 1, arbitrary: fc.constantFrom(header_of_other_secret, header_of_other_body) },
  { weight: 1, arbitrary: fc.string() },
  { weight: 1, arbitrary: fc.constantFrom("", "=", "t", "v1", "t=", "v1=", "__proto__=1", "v0=a") },
);
const well_formed = fc.tuple(
  fc.integer({ min: T - 299, max: T + 299 }),
  fc.array(
    fc.string({ unit: fc.constantFrom(..."0123456789abcdef"), minLength: 64, maxLength: 64 }),
    { minLength: 1, maxLength: 5 },
  ),
).map(([t, signatures]) => `t=${t},${signatures.map((value) => `v1=${value}`).join(",")}`);
const any_header = fc.oneof(
  fc.array(part, { maxLength: 8 }).map((parts) => parts.join(",")),
  well_formed,
  fc.string({ unit: "binary", maxLength: 200 }),
  fc.constantFrom(header_of_other_secret, header_of_other_body),
);

Deno.test(`verifyWebhook() refuses ${HEADERS} forged headers and throws nothing else`, async () => {
  const reasons = new Map<string, number>();
  const property = fc.asyncProperty(any_header, async (header) => {
    const verifying = verifyWebhook(BODY, header, SECRET, { now_ms: T * 1000 });
    await assert.rejects(verifying, (error) => {
      assert.ok(error instanceof WebhookVerificationError, String(error));
      reasons.set(error.reason, (reasons.get(error.reason) ?? 0) + 1);
      return true;
    });
  });
  await fc.assert(property, { numRuns: HEADERS, seed: SEED });
  // The test is useful only if many headers reach the comparison.
  assert.ok((reasons.get("no_matching_signature") ?? 0) > HEADERS / 5, Deno.inspect(reasons));
  assert.ok((reasons.get("malformed_header") ?? 0) > HEADERS / 5, Deno.inspect(reasons));
});

Deno.test("verifyWebhook() accepts signatures of signWebhook() for any body", async () => {
  const property = fc.asyncProperty(
    fc.dictionary(fc.string({ unit: "grapheme" }), fc.jsonValue()),
    fc.string({ minLength: 1 }),
    fc.integer({ min: 0, max: 999_999_999_999 }),
    async (payload, secret, timestamp_seconds) => {
      const body = JSON.stringify(payload);
      const header = await signWebhook({ body, secret, timestamp_seconds });
      const options = { now_ms: timestamp_seconds * 1000 };
      assert.deepEqual(await verifyWebhook(body, header, secret, options), JSON.parse(body));
    },
  );
  await fc.assert(property, { numRuns: 500, seed: SEED });
});
