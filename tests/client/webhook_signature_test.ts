/**
 * The receivers' module: the published vectors, and cases that vectors cannot express. It accepts
 * no header that an attacker without the secret can write (security.md, forged deliveries): the
 * message of a failure has the seed; `SEED` sets it. It accepts signatures of the npm package
 * `stripe`; `webhook_docs_test.ts` shows that this package accepts ours.
 */

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import fc from "fast-check";
import Stripe from "stripe";
import {
  DEFAULT_TOLERANCE_SECONDS,
  signWebhook,
  verifyWebhook,
  type VerifyWebhookOptions,
  WEBHOOK_SIGNATURE_HEADER,
  WebhookVerificationError,
} from "../../packages/client/webhook_signature.ts";
import vectors from "../../packages/client/test_vectors/webhook_signatures.json" with {
  type: "json",
};

const SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const T = 1_767_225_600;
const NOW = { now_ms: T * 1000 };
const BODY = '{"id":"evt_1"}';
const HEADER = await signWebhook({ body: BODY, secret: SECRET, timestamp_seconds: T });

/** "valid", or the reason of the error. Any other error fails the test. */
async function outcome(...given: Parameters<typeof verifyWebhook>): Promise<string> {
  try {
    await verifyWebhook(...given);
    return "valid";
  } catch (error) {
    assert.ok(error instanceof WebhookVerificationError, String(error));
    return error.reason;
  }
}

/** The reasons of a refusal, each of which has vectors. */
const REASONS = ["invalid_payload", "malformed_header", "missing_header", "missing_secret"]
  .concat("no_matching_signature", "timestamp_outside_tolerance");

Deno.test("the vectors have the rules of the module, each name once, and every outcome", () => {
  const { header_name, tolerance_seconds } = vectors;
  assert.deepEqual([header_name, tolerance_seconds], [
    WEBHOOK_SIGNATURE_HEADER,
    DEFAULT_TOLERANCE_SECONDS,
  ]);
  const names = vectors.vectors.map(({ name }) => name);
  assert.deepEqual(names.filter((name, i) => names.indexOf(name) !== i), []);
  const outcomes = Map.groupBy(vectors.vectors, ({ expect }) => expect);
  assert.deepEqual([...outcomes.keys()].sort(), [...REASONS, "valid"]);
  for (const { name, header, secret, body } of outcomes.get("valid")!) {
    const [, t] = /(?:^|,)t=(\d+)/.exec(header!)!;
    const hex = createHmac("sha256", secret).update(`${t}.${body}`).digest("hex");
    assert.ok(header!.includes(`v1=${hex}`), name);
  }
});

for (const { name, body, body_base64, header, secret, now, expect } of vectors.vectors) {
  Deno.test(`verifyWebhook() vector: ${name}: ${expect}`, async () => {
    const at = { now_ms: now * 1000 };
    const bytes = body === undefined
      ? Uint8Array.from(atob(body_base64 ?? ""), (character) => character.charCodeAt(0))
      : new TextEncoder().encode(body);
    assert.equal(await outcome(bytes, header, secret, at), expect, "as bytes");
    if (body === undefined) return;
    assert.equal(await outcome(body, header, secret, at), expect, "as text");
    if (expect === "valid") {
      assert.deepEqual(await verifyWebhook(body, header, secret, at), JSON.parse(body));
    }
  });
}

Deno.test("verifyWebhook() refuses a body in which any one bit is changed", async () => {
  const bytes = new TextEncoder().encode(BODY);
  for (let bit = 0; bit < bytes.length * 8; bit++) {
    const changed = bytes.slice();
    changed[bit >> 3]! ^= 1 << (bit & 7);
    assert.equal(await outcome(changed, HEADER, SECRET, NOW), "no_matching_signature", `${bit}`);
  }
});

Deno.test("verifyWebhook() refuses a header in which any one character is changed", async () => {
  for (let at = 0; at < HEADER.length; at++) {
    for (const other of "0a=,t v1F\u0000") {
      if (HEADER[at] === other) continue;
      const changed = HEADER.slice(0, at) + other + HEADER.slice(at + 1);
      assert.notEqual(await outcome(BODY, changed, SECRET, NOW), "valid", changed);
    }
  }
});

const TOLERANCES: readonly [VerifyWebhookOptions, string][] = [
  [{ now_ms: (T + 300) * 1000 - 1 }, "valid"],
  [{ now_ms: (T + 300) * 1000 }, "timestamp_outside_tolerance"],
  [{ now_ms: (T - 300) * 1000 + 1 }, "valid"],
  [{ now_ms: (T - 300) * 1000 }, "timestamp_outside_tolerance"],
  [{ now_ms: (T + 10) * 1000, tolerance_seconds: 10 }, "timestamp_outside_tolerance"],
  [{ now_ms: (T + 9) * 1000, tolerance_seconds: 10 }, "valid"],
  [{ now_ms: (T + 301) * 1000, tolerance_seconds: 302 }, "valid"],
  [{ now_ms: T * 1000, tolerance_seconds: 0 }, "timestamp_outside_tolerance"],
  [{ now_ms: T * 1000, tolerance_seconds: -1 }, "timestamp_outside_tolerance"],
  [{ now_ms: T * 1000, tolerance_seconds: NaN }, "timestamp_outside_tolerance"],
  [{ now_ms: NaN }, "timestamp_outside_tolerance"],
  [{ now_ms: 0, tolerance_seconds: Infinity }, "valid"],
];
for (const [options, expected] of TOLERANCES) {
  Deno.test(`verifyWebhook() ${Deno.inspect(options)}: ${expected}`, async () => {
    assert.equal(await outcome(BODY, HEADER, SECRET, options), expected);
  });
}

Deno.test("verifyWebhook() reads the machine's clock by default", async () => {
  const timestamp_seconds = Math.floor(Date.now() / 1000);
  const fresh = await signWebhook({ body: BODY, secret: SECRET, timestamp_seconds });
  assert.equal(await outcome(BODY, fresh, SECRET), "valid");
  assert.equal(await outcome(BODY, HEADER, SECRET), "timestamp_outside_tolerance");
});

// Arguments of callers without type checking.
const WRONG_TYPES: readonly [string, unknown, unknown, unknown, string][] = [
  ["a parsed body", { id: "evt_1" }, HEADER, SECRET, "invalid_payload"],
  ["an undefined body", undefined, HEADER, SECRET, "invalid_payload"],
  ["an ArrayBuffer", new TextEncoder().encode(BODY).buffer, HEADER, SECRET, "invalid_payload"],
  ["a list of headers", BODY, [HEADER], SECRET, "malformed_header"],
  ["an undefined header", BODY, undefined, SECRET, "missing_header"],
  ["an undefined secret", BODY, HEADER, undefined, "missing_secret"],
  ["a list of secrets", BODY, HEADER, [SECRET], "missing_secret"],
];
for (const [name, body, header, secret, expected] of WRONG_TYPES) {
  Deno.test(`verifyWebhook() given ${name}: ${expected}`, async () => {
    assert.equal(await outcome(body as string, header as string, secret as string, NOW), expected);
  });
}

Deno.test("verifyWebhook() reads a view of a larger buffer within its bounds", async () => {
  const bytes = new TextEncoder().encode(`xx${BODY}yy`).subarray(2, -2);
  assert.equal((await verifyWebhook(bytes, HEADER, SECRET, NOW)).id, "evt_1");
});

Deno.test("verifyWebhook() returns the verified text if the buffer changes meanwhile", async () => {
  const bytes = new TextEncoder().encode(BODY);
  const pending = verifyWebhook(bytes, HEADER, SECRET, NOW);
  bytes.fill(0x20);
  assert.equal((await pending).id, "evt_1");
});

Deno.test("WebhookVerificationError names the probable mistake and no secret", async () => {
  const attempts: [Parameters<typeof verifyWebhook>, RegExp][] = [
    [[`${BODY} `, HEADER, SECRET, NOW], /serialized again.*another endpoint/],
    [[BODY, HEADER, `${SECRET}\n`, NOW], /does not look like one/],
    [[{} as string, HEADER, SECRET, NOW], /request\.arrayBuffer\(\)/],
    [[BODY, HEADER, SECRET, { now_ms: 0 }], /clock/],
    [[BODY, null, SECRET, NOW], /no Payment-Signature header/],
    [[BODY, "t=1", SECRET, NOW], /no v1 part/],
    [[BODY, "v1=1", SECRET, NOW], /no t part/],
    [[BODY, HEADER, "", NOW], /secret is empty/],
  ];
  for (const [given, expected] of attempts) {
    await assert.rejects(verifyWebhook(...given), (error: Error) => {
      assert.match(error.message, expected);
      assert.ok(!error.message.includes(SECRET.slice(6)) && !error.message.includes("evt_1"));
      return error.name === "WebhookVerificationError";
    });
  }
});

Deno.test("signWebhook() makes the known signature", () => {
  // printf '1767225600.{"id":"evt_1"}' | openssl dgst -sha256 -hmac 'whsec_AAECAw…Hh8='
  assert.equal(
    HEADER,
    `t=${T},v1=858a6898855283e5c3b92475c4dbd952d6e9b0133089f760df6ec0bf01f14d76`,
  );
});

Deno.test("signWebhook() refuses a timestamp that is no whole number of seconds", async () => {
  for (const timestamp_seconds of [1.5, -1, NaN, Infinity, T * 1000, 1e21]) {
    const sign = signWebhook({ body: BODY, secret: SECRET, timestamp_seconds });
    await assert.rejects(sign, RangeError, `${timestamp_seconds}`);
  }
});

const HEADERS = 10_000;
const SEED = Number(Deno.env.get("SEED") ?? Date.now() % 2 ** 31);
const OTHER_SECRET = "whsec_ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8=";

const other_secret = await signWebhook({ body: BODY, secret: OTHER_SECRET, timestamp_seconds: T });
const header_of_body = await signWebhook({
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
  { weight: 1, arbitrary: fc.constantFrom(other_secret, header_of_body) },
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
  fc.constantFrom(other_secret, header_of_body),
);

Deno.test(`verifyWebhook() refuses ${HEADERS} forged headers and throws nothing else`, async () => {
  const reasons = new Map<string, number>();
  const property = fc.asyncProperty(any_header, async (header) => {
    const reason = await outcome(BODY, header, SECRET, NOW);
    assert.notEqual(reason, "valid", header);
    reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
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

Deno.test("verifyWebhook() accepts signatures of stripe", async () => {
  for (
    const payload of [BODY, '{"description":"Größe 日本語 🧾 \u2028"}', '{\r\n  "a": 1\r\n}\n']
  ) {
    const header = await Stripe.webhooks.generateTestHeaderStringAsync({ payload, secret: SECRET });
    assert.deepEqual(await verifyWebhook(payload, header, SECRET), JSON.parse(payload));
  }
});
