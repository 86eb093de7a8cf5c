/**
 * Signatures of deliveries, compared with those of the openssl command line (3.0), with
 *   B='{"id":"evt_1","note":"Größe 🧾"}' (spaced: B='{ "id": "evt_1",  "rate": 1.50 }')   and
 *   secret=whsec_AAEC… or whsec_ICEi… below.
 *
 * Payment-Signature:  printf '%s' "1767225600.$B" | openssl dgst -sha256 -hmac "$secret"
 * Webhook-Signature:  key=$(printf '%s' "${secret#whsec_}" | base64 -d | od -An -tx1 | tr -d ' \n')
 *                     printf '%s' "evt_1.1767225600.$B" |
 *                       openssl dgst -sha256 -mac HMAC -macopt hexkey:$key -binary | openssl base64
 * endpoint secrets:   printf '%s' '23:webhook_endpoint_secret,30:whe_…,1:1,16:0123456789abcdef,' |
 *                       openssl dgst -sha256 -hmac "$master" -binary | openssl base64
 */

import assert from "node:assert/strict";
import { deriveEndpointSecret, signDelivery } from "../../shared/core/webhook_signature.ts";

const NEW_SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const OLD_SECRET = "whsec_ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8=";
const DELIVERY = {
  event_id: "evt_1",
  body: '{"id":"evt_1","note":"Größe 🧾"}',
  secrets: [NEW_SECRET],
  timestamp_seconds: 1_767_225_600,
};
const NEW_HEX = "b004ac08da4f9ad076896ff08d4d21330eb201ff566bfd3ce0a8e7115556215b";
const OLD_HEX = "374773a7c7abace0425b716d41fc7aa05d7883f102721012a9877815316628ac";
const NEW_BASE64 = "mXzJHEzQfblCFsF4QjYOv8EmaeyNcvQNURzj4XW5OG4=";
const OLD_BASE64 = "IiPDzkEmpm39JI6a113v5Zlc4XxbhFXEfFsEqvu91/M=";
const SPACED_HEX = "1028c48a6385e21eb5acc315367a81ba6b251c6010da2d541bef6115b5d5a642";
const SPACED_BASE64 = "ifM4MnqTIUrTxxhDhuYG3nPO9QCPjYjfB9lmAudGNu8=";

Deno.test("signDelivery() makes the known headers", () => {
  assert.deepEqual(signDelivery(DELIVERY), {
    "Payment-Signature": `t=1767225600,v1=${NEW_HEX}`,
    "Webhook-Id": "evt_1",
    "Webhook-Timestamp": "1767225600",
    "Webhook-Signature": `v1,${NEW_BASE64}`,
  });
});

Deno.test("signDelivery() signs the text as it is, with its spaces", () => {
  const headers = signDelivery({ ...DELIVERY, body: '{ "id": "evt_1",  "rate": 1.50 }' });
  assert.equal(headers["Payment-Signature"], `t=1767225600,v1=${SPACED_HEX}`);
  assert.equal(headers["Webhook-Signature"], `v1,${SPACED_BASE64}`);
});

Deno.test("signDelivery() signs with every secret in the order given", () => {
  const headers = signDelivery({ ...DELIVERY, secrets: [NEW_SECRET, OLD_SECRET] });
  assert.equal(headers["Payment-Signature"], `t=1767225600,v1=${NEW_HEX},v1=${OLD_HEX}`);
  assert.equal(headers["Webhook-Signature"], `v1,${NEW_BASE64} v1,${OLD_BASE64}`);
});

/** No secret, empty ones, and those without the prefix, of other lengths and of other base64. */
const WRONG_SECRETS: string[][] = [
  ...[[], [""], [NEW_SECRET, ""], [NEW_SECRET.slice(6)], [`${NEW_SECRET}\n`]],
  ...[31, 33].map((bytes) => ["whsec_" + btoa("x".repeat(bytes))]),
  ...[[NEW_SECRET.replace("A", "_")], [NEW_SECRET.replace("8=", "9=")]],
];
for (const secrets of WRONG_SECRETS) {
  Deno.test(`signDelivery() refuses ${JSON.stringify(secrets)} and does not repeat it`, () => {
    assert.throws(() => signDelivery({ ...DELIVERY, secrets }), (error: Error) => {
      const tells = secrets.some((secret) => secret !== "" && error.message.includes(secret));
      return error instanceof RangeError && !tells;
    });
  });
}

Deno.test("signDelivery() refuses a timestamp that is no whole number of seconds", () => {
  for (const timestamp_seconds of [-1, 0.5, NaN, Infinity, 1_767_225_600_000]) {
    const sign = () => signDelivery({ ...DELIVERY, timestamp_seconds });
    assert.throws(sign, RangeError, `${timestamp_seconds}`);
  }
});

const SOURCE = {
  master_secret: "0123456789abcdef0123456789abcdef",
  endpoint_id: "whe_00000000000000000000000001",
  version: 1,
  salt: "0123456789abcdef",
};
const DERIVED: readonly [Partial<typeof SOURCE>, string][] = [
  [{}, "whsec_TrzCBQ3v2WtfjbfBAU+WQUYKHH8Xxz3UI3oLNwO9vjY="],
  [{ version: 2 }, "whsec_gEGZWTqWxJpOsdB02XOKcfWqT+cc+sDc0tl5UW917P8="],
  [{ version: 10, salt: "é" }, "whsec_DUptMD7691g1mqBuZJqPHQfNPITsjgey6m612vRqjH0="],
  [
    { master_secret: "ключ-ключ-ключ-ключ", endpoint_id: "whe_1", version: 0, salt: "abc" },
    "whsec_puco8U+3wMu4FB+W3twq2O7twNr5MbKID1n9Nx3Vxp4=",
  ],
];
for (const [change, expected] of DERIVED) {
  Deno.test(`deriveEndpointSecret() makes the known secret with ${JSON.stringify(change)}`, () => {
    assert.equal(deriveEndpointSecret({ ...SOURCE, ...change }), expected);
  });
}

Deno.test("deriveEndpointSecret() distinguishes sources whose joined texts are equal", () => {
  const sources = [
    { endpoint_id: "whe_1", version: 1, salt: "1a" },
    { endpoint_id: "whe_1", version: 11, salt: "a" },
    { endpoint_id: "whe_11", version: 1, salt: "a" },
    { endpoint_id: "whe_1,1:1", version: 1, salt: "a" },
    { endpoint_id: "whe_1", version: 1, salt: "1,1:a" },
    { endpoint_id: "", version: 1, salt: "whe_11a" },
  ];
  const secrets = sources.map((source) => deriveEndpointSecret({ ...SOURCE, ...source }));
  assert.equal(new Set(secrets).size, sources.length);
});

Deno.test("deriveEndpointSecret() refuses a short master secret, and a version that is no count", () => {
  for (const master_secret of ["", "x", "x".repeat(31), "ключ-ключ-ключ"]) {
    assert.throws(() => deriveEndpointSecret({ ...SOURCE, master_secret }), (error: Error) => {
      return error instanceof RangeError && !error.message.includes(master_secret || "whsec_");
    });
  }
  for (const version of [-1, 1.5, NaN, 2 ** 53]) {
    assert.throws(() => deriveEndpointSecret({ ...SOURCE, version }), RangeError, `${version}`);
  }
});
