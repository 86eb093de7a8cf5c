/**
 * Every reader of untrusted input takes linear time: of responses of webhook receivers, requests of
 * callers, and requests to a customer's receiver.
 *
 * Each reader has valid texts. It gets hostile ones derived from them, of growing length, and takes
 * a time that only a linear reader keeps (growth.ts).
 */

import assert from "node:assert/strict";
import { parseRetryAfter } from "../../packages/client/retry.ts";
import { signWebhook, verifyWebhook } from "../../packages/client/webhook_signature.ts";
import { parseApiKey } from "../../shared/core/api_key.ts";
import { fingerprint } from "../../shared/core/canonical_json.ts";
import { containsCardNumber, normalizeCardNumber } from "../../shared/core/card_number.ts";
import { findReference } from "../../shared/core/creditor_reference.ts";
import { isCurrency, normalizeCurrency } from "../../shared/core/currency.ts";
import { checkEndpointUrl } from "../../shared/core/endpoint_url.ts";
import { RESPONSE_BYTES_MAX, ResponseReader } from "../../shared/delivery/http_response.ts";
import { isValidIban, normalizeIban } from "../../shared/core/iban.ts";
import { isPrivateAddress, isPublicAddress } from "../../shared/core/public_address.ts";
import { parseStrictJson } from "../../shared/http/strict_json.ts";
import { NETWORKS } from "../../shared/core/vocabulary.ts";
import { inferNetwork, isValidAddress } from "../../shared/core/wallet_address.ts";
import { readInstrument } from "../../shared/domain/providers/instrument.ts";
import { nextAttemptAt } from "../../shared/domain/webhooks/retry_schedule.ts";
import type { Route } from "../../shared/http/route.ts";
import { parseBody, parseQuery } from "../../shared/http/parse_input.ts";
import {
  createPaymentsFunction,
  PAYMENTS_FUNCTION_ROUTES,
} from "../../shared/functions/payments_function.ts";
import { parseBytes } from "../../shared/http/request_body.ts";
import { SANDBOX_ROUTES } from "../../shared/sandbox/sandbox_routes.ts";
import { MAX_BODY_BYTES } from "../../shared/schema/limits.ts";
import { createDependencies } from "../../shared/functions/dependencies.ts";
import { CATALOGUE } from "../support/catalogue/requests.ts";
import { findSlowText, type Reader } from "../support/core/growth.ts";
import { SHOWN_FIELDS } from "../support/domain/decided_change.ts";

/** HOSTILE_SEED selects other texts. */
const SEED = Number(Deno.env.get("HOSTILE_SEED") ?? 1);

/** Servers accept no longer head, so no header and no path is longer. */
const HEAD = 16 * 1024;
const RESPONSE = RESPONSE_BYTES_MAX;
const BODY = MAX_BODY_BYTES;

const RESPONSES = [
  "HTTP/1.1 200 OK\r\nRetry-After: 120 \r\nContent-Length: 2\r\n\r\nok",
  "HTTP/1.1 503 Busy\r\nServer:  a b\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n" +
  "2;x=y\r\nok\r\n0\r\nA: b\r\n\r\n",
  "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 200\r\nA:\tb\t\r\n\r\nbody",
];
const KEY = "sk_test_PublishedKeyForLocalDevelopmentOnly000000003aKpBk";
const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=";
const SIGNATURE = await signWebhook({
  body: "{}",
  secret: SECRET,
  timestamp_seconds: 1_800_000_000,
});
const CARDS = ["4242 4242 4242 4242", "4000-0025-0000-3155", "order 2026/11/22, 12.50 EUR"];

const bodyOf = (id: string) => CATALOGUE.find(({ operation }) => operation === id)!.body!;
/** Valid bodies by the id of their operation. */
const BODIES: Record<string, Record<string, unknown>> = {
  ...Object.fromEntries(
    ["createTransfer", "createWebhookEndpoint", "createApiKey", "triggerWebhook", "advancePayment"]
      .map((id) => [id, bodyOf(id)]),
  ),
  createPayment: {
    ...SHOWN_FIELDS,
    customer: { id: "zoë/7", email: "zoë.o'hara+x@mail.example.com", name: "Zoë O'Hara" },
    description: "Order 17, 2 × tea",
    reference: "order-2026-11-22-000123",
    metadata: { cart: "a b" },
    card: { number: "4242 4242 4242 4242", exp_month: 12, exp_year: 2034, cvc: "123" },
  },
};

const DATES = ["120", "Wed, 21 Oct 2026 07:28:00 GMT"];
const URL_RULES = { allow_private: false, own_hosts: ["a.example"] };
const retryAfter = (retry_after: string) =>
  nextAttemptAt({ livemode: true, number: 1, at_ms: 0, retry_after }, 0.5);
const addressOf = (text: string) => [
  inferNetwork(text),
  NETWORKS.map((network) => isValidAddress(network, text)),
];

/** [name, length of the longest text, reader, valid texts] */
const READERS: [name: string, longest: number, read: Reader["read"], samples: string[]][] = [
  ["ResponseReader.push() whole", RESPONSE, (text) => readResponse(text, Infinity), RESPONSES],
  ["ResponseReader.push() byte by byte", RESPONSE, (text) => readResponse(text, 1), RESPONSES],
  ["nextAttemptAt()", RESPONSE, retryAfter, DATES],
  ["parseRetryAfter()", HEAD, (text) => parseRetryAfter(text, 0), DATES],
  [
    "verifyWebhook() of a header",
    HEAD,
    (header) => verifyWebhook("{}", header, SECRET, { now_ms: 1_800_000_000_000 }),
    [SIGNATURE, `${SIGNATURE},v1=${"0".repeat(64)},v0=ab`],
  ],
  ["parseApiKey()", HEAD, parseApiKey, [KEY]],
  ["parseStrictJson()", BODY, (text) => parseStrictJson(new TextEncoder().encode(text)), [
    JSON.stringify(BODIES.createPayment),
    '[1e3,-0.5,"\\u00e9\\n",{"a":[null,true]}]',
  ]],
  ["parseBytes() and parseBody()", BODY, (text) => readFor(operationOf("createPayment"), text), [
    JSON.stringify(BODIES.createPayment),
    '{"a":{"b":[{"c":1},{"d":2}]},"e":1.0}',
  ]],
  ["containsCardNumber()", BODY, containsCardNumber, [
    ...[...CARDS, "6ba7b810-9dad-11d1-80b4-00c04fd430c8", "４２４２ ４٢٤٢"],
    ...["%34%2534%E24.2", "\ufdfa 4\u200b2"],
  ]],
  ["normalizeCardNumber()", BODY, normalizeCardNumber, CARDS],
  ["normalizeIban(), isValidIban()", BODY, (text) => isValidIban(normalizeIban(text)), [
    "DE89 3704 0044 0532 0130 00",
    "gb82west12345698765432",
  ]],
  ["findReference()", BODY, findReference, [
    ...["RF33MSSYZKCZNCNZE40R", "rf33 mssy zkcz ncnz e40r", "RF\nRF33-"],
  ]],
  ["isValidAddress(), inferNetwork()", BODY, addressOf, [
    "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
    "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8",
    "9WzDXwBbmkg8ZTbNMqUxvQRAyrZzDsGYdLVL9zYtAWWM",
  ]],
  ["normalizeCurrency(), isCurrency()", BODY, (text) => isCurrency(normalizeCurrency(text)), [
    ...["eur", "USDC"],
  ]],
  ["checkEndpointUrl()", BODY, (text) => checkEndpointUrl(text, URL_RULES), [
    ...["https://hooks.example.com:8443/a/b?c=d%20e", "https://[2606:4700::1111]/x"],
  ]],
  [
    "isPublicAddress() and its like",
    BODY,
    (text) => [isPublicAddress(text), isPrivateAddress(text)],
    ["2001:db8:0:1::8a2e:7334", "::ffff:192.0.2.1", "203.0.113.9", "fe80::1"],
  ],
  ...PAYMENTS_FUNCTION_ROUTES.filter(({ id }) => id.startsWith("list")).map((
    { id, query },
  ): typeof READERS[number] => [
    `parseQuery() of ${id}`,
    HEAD,
    (text) => parseQuery(query, new URLSearchParams(text)),
    [
      "limit=10&starting_after=pay_01arz3ndektsv4rrffq69g5fav&status=completed&reference=a%20b",
      "created_after=2026-01-31T12:00:00.5%2B02:00&currency=EUR&type=payment.completed",
    ],
  ]),
  ...Object.entries(BODIES).flatMap(([id, body]) =>
    textsOf(body).map(({ path, text }): typeof READERS[number] => [
      `parseBody() of ${id}, ${path.join(".")}`,
      BODY - 2_000,
      (text) => readFor(operationOf(id), JSON.stringify(withText(body, path, text))),
      [text],
    ])
  ),
];

for (const [name, longest, read, samples] of READERS) {
  Deno.test(`${name} takes linear time`, async () => {
    assert.equal(await findSlowText({ longest, read, samples }, SEED), null);
  });
}

Deno.test("createPaymentsFunction() takes linear time for addresses and headers", async () => {
  const dependencies = createDependencies({
    // No request has a valid key, so no request uses the database.
    database_url: "postgres://nobody@127.0.0.1:1/none",
    base_url: "http://127.0.0.1:1/functions/v1",
    allowed_origins: ["http://localhost:*", "https://console.example.com"],
    log: () => {},
  });
  const serve = createPaymentsFunction(dependencies);
  const to = (path: string, header?: string) => (text: string) =>
    header === undefined ? requested(path + text) : requested(path, header, text);
  const places: [name: string, samples: string[], prepare: (text: string) => Request][] = [
    ["path", ["v1/payments/pay_01arz3/refund?limit=1", "v1//%2e%2e/a;b"], to("")],
    ["Authorization", [`Bearer ${KEY}x`], to("v1/payments", "Authorization")],
    ["Origin", ["http://localhost:3000"], to("v1/payments", "Origin")],
    ["X-Forwarded-For", ["203.0.113.9, 198.51.100.7"], to("v1/payments", "X-Forwarded-For")],
    ["Accept-Encoding", ["gzip;q=0.5, br"], to("openapi.json", "Accept-Encoding")],
    ["If-None-Match", ['"a", W/"b"'], to("openapi.json", "If-None-Match")],
  ];
  const read = async (request: Request) => await (await serve(request)).text();
  try {
    for (const [name, samples, prepare] of places) {
      const slow = await findSlowText({ samples, longest: HEAD, prepare, read }, SEED);
      assert.equal(slow, null, `${name}: ${slow}`);
    }
  } finally {
    await dependencies.close();
  }
});

/** Readers that are slow on purpose. The measurement must find them. */
const CARELESS: [name: string, read: (text: string) => unknown, sample: string][] = [
  [
    "an expression with adjacent repetitions",
    (text) => /^([a-z]+):[ \t]*(.*?)[ \t]*$/i.exec(text),
    "a: b c \t",
  ],
  ["a loop that restarts at each character", (text) => {
    let sum = 0;
    for (let from = 0; from < text.length; from++) {
      for (let at = from; text.charCodeAt(at) >= 48; at++) sum += at;
    }
    return sum;
  }, "4242 4242"],
];
for (const [name, read, sample] of CARELESS) {
  Deno.test(`the measurement finds ${name}`, async () => {
    assert.notEqual(await findSlowText({ longest: RESPONSE, read, samples: [sample] }, SEED), null);
  });
}

async function readResponse(text: string, step: number): Promise<number | undefined> {
  const bytes = new TextEncoder().encode(text);
  const reader = await ResponseReader.open();
  try {
    for (let at = 0; at < bytes.length && !reader.done; at += step) {
      reader.push(bytes.subarray(at, at + step));
    }
    return reader.status;
  } finally {
    reader.close();
  }
}

async function readFor(operation: Route, text: string) {
  const { headers, body: sent } = requested("", "Content-Type", "application/json", text);
  const bytes = new Uint8Array(await new Response(sent).arrayBuffer());
  const body = parseBytes(bytes, headers, operation.body);
  const input = parseBody(operation.body, body);
  if (operation.id === "createPayment") readInstrument(input as never, false, 0);
  return fingerprint(operation.method, "/v1", body.value);
}

function operationOf(id: string): Route {
  return [...PAYMENTS_FUNCTION_ROUTES, ...SANDBOX_ROUTES].find((operation) => operation.id === id)!;
}

/** A request to the payments function; throws if no client can send it. */
function requested(path: string, header = "Accept", value = "*/*", body?: string): Request {
  return new Request(`http://127.0.0.1:1/api-v1-payments/${path}`, {
    headers: { [header]: value },
    ...(body === undefined ? {} : { method: "POST", body }),
  });
}

/** Every text of a body, with its path. */
function textsOf(value: unknown, path: string[] = []): { path: string[]; text: string }[] {
  if (typeof value === "string") return [{ path, text: value }];
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, member]) => textsOf(member, [...path, name]));
}

/** A copy of a body with another text at one path. */
function withText(body: unknown, [name, ...rest]: string[], text: string): unknown {
  if (name === undefined) return text;
  const copy = (Array.isArray(body) ? [...body] : { ...(body as object) }) as Record<
    string,
    unknown
  >;
  copy[name] = withText(copy[name], rest, text);
  return copy;
}
