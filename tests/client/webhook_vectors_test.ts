/**
 * The committed test vectors of webhooks equal these cases. Expectations are written by hand from
 * contract §4; signatures come from `node:crypto` here, not from the code under test. After a change
 * of the cases, or of the events in docs/openapi.json, run
 * `UPDATE_VECTORS=1 deno test -A tests/client/webhook_vectors_test.ts`, then read the difference.
 */

import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { createHmac } from "node:crypto";
import {
  DEFAULT_TOLERANCE_SECONDS,
  WEBHOOK_SIGNATURE_HEADER,
} from "../../packages/client/webhook_signature.ts";
import { eventExampleName, readExamples } from "../../tools/generate/openapi/examples.ts";

const FILE = new URL("../../packages/client/test_vectors/webhook_signatures.json", import.meta.url);
const { components } = await readExamples();

interface WebhookCase {
  header: string | null;
  body?: string | Uint8Array;
  secret?: string;
  now?: number;
}
type WebhookCaseRow = readonly [name: string, expect: string, given: WebhookCase];

/** A secret that only tests can have: the bytes 0 to 31. */
const SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
/** The secret before a rotation: the bytes 32 to 63. */
const OLD_SECRET = "whsec_ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8=";
/** 2026-01-01T00:00:00Z */
const T = 1_767_225_600;

const EVENT = '{"id":"evt_00000000000000000000000001","object":"event",' +
  '"type":"payment.completed","api_version":"v1","created_at":"2026-01-01T00:00:00.000Z",' +
  '"livemode":false,"sequence":2,"data":{"object":{"id":"pay_00000000000000000000000001",' +
  '"object":"payment","amount_minor":2500,"currency":"EUR"}},' +
  '"request":{"id":"req_00000000000000000000000001","idempotency_key":"order-1"}}';
const UNICODE = '{"object":"event","description":"Größe 日本語 🧾 \u2028 e\u0301"}';
/** An event as the service sends it, from the examples of the OpenAPI document. */
const sent = (type: string) => JSON.stringify(components[eventExampleName(type)]!.value);
/** A live event that no request has made. */
const LIVE = sent("payment.completed").replaceAll('"livemode":false', '"livemode":true')
  .replace(/"request":\{[^}]*\}/, '"request":{"id":null,"idempotency_key":null}');
const REFUNDED = EVENT.replace("completed", "refunded");

/** The hexadecimal signature of a body. */
function hex(body: string | Uint8Array = EVENT, t: number | string = T, secret = SECRET): string {
  return createHmac("sha256", secret).update(`${t}.`).update(body).digest("hex");
}

/** A genuine header of a body. */
function sign(body: string | Uint8Array = EVENT, t: number | string = T, secret = SECRET): string {
  return `t=${t},v1=${hex(body, t, secret)}`;
}

const flipLastDigit = (text: string) => text.slice(0, -1) + (text.endsWith("0") ? "1" : "0");
const NO_MATCH = "no_matching_signature";
const MALFORMED = "malformed_header";
const STALE = "timestamp_outside_tolerance";

const GENUINE: readonly WebhookCaseRow[] = [
  ["an event", "valid", { header: sign() }],
  ["a smallest body", "valid", { header: sign("{}"), body: "{}" }],
  ["a body beyond ASCII", "valid", { header: sign(UNICODE), body: UNICODE }],
  ["a body with escapes", "valid", {
    header: sign('{"a":"\\u00e9\\/"}'),
    body: '{"a":"\\u00e9\\/"}',
  }],
  ["a body with dots", "valid", { header: sign('{"a":"1.2.3"}'), body: '{"a":"1.2.3"}' }],
  ["a body with CRLF", "valid", { header: sign('{\r\n"a":1\r\n}'), body: '{\r\n"a":1\r\n}' }],
  ["a body that ends in a line feed", "valid", { header: sign("{}\n"), body: "{}\n" }],
  ["a body that begins with spaces", "valid", { header: sign("  {}"), body: "  {}" }],
  ["a body of several lines", "valid", { header: sign('{\n\t"a": 1\n}'), body: '{\n\t"a": 1\n}' }],
  ["a secret of another form", "valid", { header: sign(EVENT, T, "plain"), secret: "plain" }],
  ["a secret beyond ASCII", "valid", { header: sign(EVENT, T, "clé"), secret: "clé" }],
  ["a secret with a space", "valid", { header: sign(EVENT, T, " s "), secret: " s " }],
];

const EVENTS: readonly WebhookCaseRow[] = [
  ...[
    ...["requires_action", "authorized", "completed", "partially_refunded"].map((status) =>
      `payment.${status}`
    ),
    ...["created", "completed", "failed"].map((status) => `refund.${status}`),
    ...["created", "updated", "won", "lost"].map((status) => `dispute.${status}`),
  ].map((type) => [type, sent(type)] as const),
  ["an event of a live payment, made by no request", LIVE] as const,
].map(([name, body]): WebhookCaseRow => [name, "valid", { header: sign(body), body }]);

const PARTS: readonly WebhookCaseRow[] = [
  ["rotation, new secret first", "valid", { header: `${sign()},v1=${hex(EVENT, T, OLD_SECRET)}` }],
  ["rotation, receiver still has the old secret", "valid", {
    header: `${sign()},v1=${hex(EVENT, T, OLD_SECRET)}`,
    secret: OLD_SECRET,
  }],
  ["the second v1 matches", "valid", { header: `t=${T},v1=${"0".repeat(64)},v1=${hex()}` }],
  ["the second of three v1 matches", "valid", {
    header: `t=${T},v1=${"0".repeat(64)},v1=${hex()},v1=${"f".repeat(64)}`,
  }],
  ["the same v1 twice", "valid", { header: `${sign()},v1=${hex()}` }],
  ["v1 before t", "valid", { header: `v1=${hex()},t=${T}` }],
  ["t between two v1", "valid", { header: `v1=${"0".repeat(64)},t=${T},v1=${hex()}` }],
  ["an unknown part", "valid", { header: `${sign()},v0=abc` }],
  ["an unknown part first", "valid", { header: `v2=abc,${sign()}` }],
  ["an unknown part without =", "valid", { header: `${sign()},test` }],
  ["an unknown part with two =", "valid", { header: `${sign()},k=a=b` }],
  ["an empty part at the end", "valid", { header: `${sign()},` }],
  ["an empty part in the middle", "valid", { header: sign().replace(",", ",,") }],
  ["a part named T is unknown", "valid", { header: `${sign()},T=1` }],
  ["a short v1 beside a good one", "valid", { header: `t=${T},v1=abc,v1=${hex()}` }],
  ["an empty v1 beside a good one", "valid", { header: `t=${T},v1=,v1=${hex()}` }],
  ["an upper-case v1 beside a good one", "valid", {
    header: `${sign()},v1=${hex().toUpperCase()}`,
  }],
];

const ALTERED: readonly WebhookCaseRow[] = [
  ["one byte of the body changed", NO_MATCH, { header: sign(), body: EVENT.replace("5", "6") }],
  ["the first byte of the body missing", NO_MATCH, { header: sign(), body: EVENT.slice(1) }],
  ["one byte appended to the body", NO_MATCH, { header: sign(), body: `${EVENT} ` }],
  ["a line feed appended to the body", NO_MATCH, { header: sign(), body: `${EVENT}\n` }],
  ["a byte order mark before the body", NO_MATCH, { header: sign(), body: `\ufeff${EVENT}` }],
  ["CRLF became LF", NO_MATCH, { header: sign('{\r\n"a":1}'), body: '{\n"a":1}' }],
  ["the body written again with spaces", NO_MATCH, {
    header: sign(),
    body: JSON.stringify(JSON.parse(EVENT), null, 2),
  }],
  ["an escape became a character", NO_MATCH, {
    header: sign('{"a":"\\u00e9"}'),
    body: '{"a":"é"}',
  }],
  ["a combining character was composed", NO_MATCH, {
    header: sign(UNICODE),
    body: UNICODE.normalize("NFC"),
  }],
  ["another event's signature", NO_MATCH, { header: sign(REFUNDED) }],
  ["a live event that was signed as a test event", NO_MATCH, {
    header: sign(LIVE.replaceAll('"livemode":true', '"livemode":false')),
    body: LIVE,
  }],
  ["the body emptied", NO_MATCH, { header: sign(), body: "" }],
  ["another secret", NO_MATCH, { header: sign(EVENT, T, OLD_SECRET) }],
  ["the secret without whsec_", NO_MATCH, { header: sign(), secret: SECRET.slice(6) }],
  ["the secret with a line feed", NO_MATCH, { header: sign(), secret: `${SECRET}\n` }],
  ["the secret in lower case", NO_MATCH, { header: sign(), secret: SECRET.toLowerCase() }],
  ["signed with the decoded secret", NO_MATCH, {
    header: `t=${T},v1=${
      createHmac("sha256", Buffer.from(SECRET.slice(6), "base64")).update(`${T}.${EVENT}`)
        .digest("hex")
    }`,
  }],
  ["signed without the timestamp", NO_MATCH, {
    header: `t=${T},v1=${createHmac("sha256", SECRET).update(EVENT).digest("hex")}`,
  }],
  ["signed without the dot", NO_MATCH, {
    header: `t=${T},v1=${createHmac("sha256", SECRET).update(T + EVENT).digest("hex")}`,
  }],
  ["a fresher t on an old signature", NO_MATCH, { header: `t=${T},v1=${hex(EVENT, T - 600)}` }],
  ["the last digit of v1 changed", NO_MATCH, { header: flipLastDigit(sign()) }],
  ["the first digit of v1 changed", NO_MATCH, {
    header: `t=${T},v1=${hex().startsWith("0") ? "1" : "0"}${hex().slice(1)}`,
  }],
  ["all zeros", NO_MATCH, { header: `t=${T},v1=${"0".repeat(64)}` }],
  ["three v1 and none matches", NO_MATCH, {
    header: `t=${T},v1=${hex(REFUNDED)},v1=${"0".repeat(64)},v1=${hex(EVENT, T, OLD_SECRET)}`,
  }],
  ["the good signature in another part", NO_MATCH, {
    header: `t=${T},v0=${hex()},v1=${"0".repeat(64)}`,
  }],
];

const AGES: readonly WebhookCaseRow[] = [
  ...[-299, -1, 0, 1, 299].map((age): WebhookCaseRow => [
    `received ${age} s after signing`,
    "valid",
    { header: sign(), now: T + age },
  ]),
  ...[-86_400, -301, -300, 300, 301, 86_400].map((age): WebhookCaseRow => [
    `received ${age} s after signing`,
    STALE,
    { header: sign(), now: T + age },
  ]),
  ["t is 0", STALE, { header: sign(EVENT, 0) }],
  ["t of twelve digits", STALE, { header: sign(EVENT, 999_999_999_999) }],
  ["t of twelve digits, clock there too", "valid", {
    header: sign(EVENT, 999_999_999_999),
    now: 999_999_999_999,
  }],
  ["stale and of another secret", STALE, { header: sign(EVENT, T, OLD_SECRET), now: T + 300 }],
];

const BAD_TIMESTAMPS = ["", `+${T}`, `-${T}`, `${T}.0`, `${T}.`, `0${T}`, `${T}000`, " ", "1e9"]
  .concat([
    `${T} `,
    ` ${T}`,
    `0x${T.toString(16)}`,
    "NaN",
    "Infinity",
    "１７６７２２５６００",
    `${T}\t`,
  ])
  .concat([`"${T}"`, `${T}_0`, "00", "now"]);

const MALFORMED_HEADERS: readonly WebhookCaseRow[] = [
  ...BAD_TIMESTAMPS.map((t): WebhookCaseRow => [
    `t is ${JSON.stringify(t)}`,
    MALFORMED,
    { header: sign(EVENT, t) },
  ]),
  ["no t", MALFORMED, { header: `v1=${hex()}` }],
  ["t without a value", MALFORMED, { header: `t,v1=${hex()}` }],
  ["two t, both right", MALFORMED, { header: `t=${T},${sign()}` }],
  ["two t, the second wrong", MALFORMED, { header: `${sign()},t=${T + 1}` }],
  ["two t, the second empty", MALFORMED, { header: `${sign()},t=` }],
  ["T instead of t", MALFORMED, { header: `T${sign().slice(1)}` }],
  ["a space before t", MALFORMED, { header: ` ${sign()}` }],
  ["no v1", MALFORMED, { header: `t=${T}` }],
  ["v0 only", MALFORMED, { header: `t=${T},v0=${hex()}` }],
  ["V1 instead of v1", MALFORMED, { header: `t=${T},V1=${hex()}` }],
  ["an empty v1", MALFORMED, { header: `t=${T},v1=` }],
  ["v1 without a value", MALFORMED, { header: `t=${T},v1` }],
  ["v1 one digit short", MALFORMED, { header: sign().slice(0, -1) }],
  ["v1 one digit long", MALFORMED, { header: `${sign()}0` }],
  ["v1 in upper case", MALFORMED, { header: `t=${T},v1=${hex().toUpperCase()}` }],
  ["v1 with a digit that is not hex", MALFORMED, { header: `${sign().slice(0, -1)}g` }],
  ["v1 in base64", MALFORMED, {
    header: `t=${T},v1=${Buffer.from(hex(), "hex").toString("base64")}`,
  }],
  ["a space before v1", MALFORMED, { header: sign().replace(",", ", ") }],
  ["a space after =", MALFORMED, { header: `t=${T},v1= ${hex()}` }],
  ["a line feed after v1", MALFORMED, { header: `${sign()}\n` }],
  ["a quoted value", MALFORMED, { header: `t=${T},v1="${hex()}"` }],
  ["semicolon instead of comma", MALFORMED, { header: sign().replace(",", ";") }],
  ["colon instead of =", MALFORMED, { header: sign().replaceAll("=", ":") }],
  ["the signature alone", MALFORMED, { header: hex() }],
  ["a Standard Webhooks value", MALFORMED, {
    header: `v1,${Buffer.from(hex(), "hex").toString("base64")}`,
  }],
  ["a space", MALFORMED, { header: " " }],
  ["a comma", MALFORMED, { header: "," }],
  ["an equals sign", MALFORMED, { header: "=" }],
];

const INVALID_BYTES = Uint8Array.of(0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d);
const NOT_OBJECTS = [
  "",
  " ",
  "null",
  "true",
  "12",
  '"text"',
  "[]",
  "[{}]",
  "payment",
  "{",
  '{"a":1',
]
  .concat(["{}{}", "{'a':1}"]);

const MISSING_AND_PAYLOAD: readonly WebhookCaseRow[] = [
  ["no header", "missing_header", { header: null }],
  ["an empty header", "missing_header", { header: "" }],
  ["an empty secret", "missing_secret", { header: sign(), secret: "" }],
  ["an empty secret that signed", "missing_secret", { header: sign(EVENT, T, ""), secret: "" }],
  ["an empty secret and no header", "missing_secret", { header: null, secret: "" }],
  ...NOT_OBJECTS.map((body): WebhookCaseRow => [
    `genuine, but the body is ${JSON.stringify(body)}`,
    "invalid_payload",
    { header: sign(body), body },
  ]),
  ["genuine, but not UTF-8", "invalid_payload", {
    header: sign(INVALID_BYTES),
    body: INVALID_BYTES,
  }],
];

/** Every vector, in the order of the file. */
const VECTORS = [GENUINE, EVENTS, PARTS, ALTERED, AGES, MALFORMED_HEADERS, MISSING_AND_PAYLOAD]
  .flat().map(([name, expect, { header, body = EVENT, secret = SECRET, now = T }]) => ({
    name,
    secret,
    header,
    ...(typeof body === "string"
      ? { body }
      : { body_base64: Buffer.from(body).toString("base64") }),
    now,
    expect,
  }));

/** The whole file: its description, then each vector on its line. */
function makeFile(): string {
  const file = {
    description:
      "Verification of webhooks. For each vector: verify `body` (text, sent as UTF-8) or " +
      "`body_base64` with `header`, `secret` and the clock at `now` (Unix seconds). `expect` is " +
      "valid, or why it is refused. Format: docs/webhook_verification.md.",
    header_name: WEBHOOK_SIGNATURE_HEADER,
    tolerance_seconds: DEFAULT_TOLERANCE_SECONDS,
    vectors: [],
  };
  const vectors = VECTORS.map((vector) => `    ${JSON.stringify(vector)}`);
  return JSON.stringify(file, null, 2).replace("[]", () => `[\n${vectors.join(",\n")}\n  ]`) + "\n";
}

Deno.test("the test vectors of webhooks are the committed file, byte for byte", async () => {
  if (Deno.env.get("UPDATE_VECTORS") === "1") await Deno.writeTextFile(FILE, makeFile());
  assert.equal(await Deno.readTextFile(FILE), makeFile());
});

Deno.test("no two test vectors of webhooks have one name", () => {
  const names = VECTORS.map((vector) => vector.name);
  assert.deepEqual(names.filter((name, i) => names.indexOf(name) !== i), []);
});
