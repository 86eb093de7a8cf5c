/** The receivers' module: the committed vectors, and cases that vectors cannot express. */

import assert from "node:assert/strict";
import {
  signWebhook,
  verifyWebhook,
  type VerifyWebhookOptions,
  WebhookVerificationError,
} from "../../packages/client/webhook_signature.ts";
import vectors from "../../packages/client/test_vectors/webhook_signatures.json" with {
  type: "json",
};
import type { WebhookVector } from "../support/client/webhook_vector_cases.ts";

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

function vectorBytes(vector: WebhookVector): Uint8Array {
  return vector.body === undefined
    ? Uint8Array.from(atob(vector.body_base64 ?? ""), (character) => character.charCodeAt(0))
    : new TextEncoder().encode(vector.body);
}

for (const vector of vectors.vectors as WebhookVector[]) {
  Deno.test(`verifyWebhook() vector: ${vector.name}: ${vector.expect}`, async () => {
    const { header, secret, now, expect } = vector;
    const at = { now_ms: now * 1000 };
    assert.equal(await outcome(vectorBytes(vector), header, secret, at), expect, "as bytes");
    if (vector.body === undefined) return;
    assert.equal(await outcome(vector.body, header, secret, at), expect, "as text");
    if (expect === "valid") {
      const event = await verifyWebhook(vector.body, header, secret, at);
      assert.deepEqual(event, JSON.parse(vector.body));
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

for (const timestamp_seconds of [1.5, -1, NaN, Infinity, T * 1000, 1e21]) {
  Deno.test(`signWebhook() refuses the timestamp ${timestamp_seconds}`, async () => {
    await assert.rejects(
      signWebhook({ body: BODY, secret: SECRET, timestamp_seconds }),
      RangeError,
    );
  });
}
