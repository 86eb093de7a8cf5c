/**
 * The examples of the OpenAPI document are real responses. The test sends each request to the
 * service, with a fixed clock and seeded randomness, and compares the response with the recorded
 * one. `UPDATE_EXAMPLES=1` writes the responses to docs/openapi.json instead.
 */

import assert from "node:assert/strict";
import type { ErrorCode } from "../../shared/core/errors.ts";
import { claimKey } from "../support/database/idempotency_keys.ts";
import { addAccount } from "../support/database/provider_flow.ts";
import { fingerprint } from "../../shared/core/canonical_json.ts";
import { EVENT_TYPES } from "../../shared/core/vocabulary.ts";
import { ERROR_CODES } from "../../shared/schema/error.ts";
import {
  errorExampleName,
  eventExampleName,
  type Examples,
  examplesIn,
  type OperationExamples,
  readExamples,
} from "../../tools/generate/openapi/examples.ts";
import { renderDocument } from "../../tools/generate/openapi/openapi.ts";
import type { Json } from "../../tools/generate/openapi/schemas.ts";
import { ADDRESSES } from "../../tools/generate/openapi/operations.ts";
import {
  setServerTime,
  startService,
  type TestResponse,
  type TestService,
} from "../support/service/service.ts";
import { CATALOGUE, type CatalogueRequest } from "../support/catalogue/requests.ts";
import { fill, keep, type Saved } from "../support/catalogue/run_catalogue.ts";

const FILE = new URL("../../docs/openapi.json", import.meta.url);
const PAYMENTS = "/api-v1-payments/v1/payments";
const STARTED_AT = Date.parse("2026-11-20T09:00:00.000Z");
/** Most responses of an operation in the document, which has a limit of bytes. */
const RESPONSES_MAX = 2;
/** Operations with one response: their further responses look like those of another operation. */
const WITH_ONE_RESPONSE: readonly string[] = [
  "createSandboxPayment",
  "authenticatePayment",
  "advancePayment",
  "advanceRefund",
];
/** A port without a listener. */
const NO_DATABASE = "postgres://nobody@127.0.0.1:1/none";

/** A request of the list and its response. */
interface Exchange {
  operation: string;
  name: string;
  summary?: string;
  request: Json | undefined;
  status: number;
  response: Json;
}

Deno.test("the examples of the OpenAPI document are the service's responses", async () => {
  await using receiver = listen();
  const document = await renderDocument(await record(receiver.url));
  if (Deno.env.get("UPDATE_EXAMPLES")) await Deno.writeTextFile(FILE, document);
  assert.deepEqual(
    examplesIn(JSON.parse(document)),
    await readExamples(),
    'record them again with UPDATE_EXAMPLES=1, then run "deno task generate"',
  );
});

Deno.test("every operation has an example of its response, and of its body if it has one", () => {
  const shown = new Set(CATALOGUE.map(({ operation }) => operation));
  // A transcript is text, and shows other examples.
  const missing = ADDRESSES.filter(({ operation }) =>
    operation.media_type === undefined && !shown.has(operation.id)
  );
  assert.deepEqual(missing.map(({ id }) => id), []);
});

async function record(receiver_url: string): Promise<Examples> {
  let at = STARTED_AT;
  const service = await startService({
    random: seeded(1),
    clock: () => at,
    checkout_url: "http://127.0.0.1:54321/pay",
    request_log: true,
  });
  try {
    // Disposable sandboxes and idempotency keys show times of the database.
    await setServerTime(service.sql, STARTED_AT);
    // So does the key of the requests, which was made before.
    const made_at = new Date(STARTED_AT);
    await service.sql`update pay.api_keys set created_at = ${made_at}`;
    await service.sql`update pay.api_key_secrets
      set created_at = ${made_at}, last_used_at = ${made_at}`;
    const saved: Saved = new Map([["url", receiver_url], ["since", "2026-11-20T09:00:00Z"]]);
    const exchanges: Exchange[] = [];
    const reset_at = CATALOGUE.findIndex(({ operation }) => operation === "resetSandbox");
    for (const request of CATALOGUE.slice(0, reset_at)) {
      if (request.summary !== undefined) at += 1000;
      exchanges.push(await exchange(service, request, saved));
    }
    // The reset deletes all earlier events.
    const events = await recordEvents(service);
    at += 1000;
    const [reset, ...last] = CATALOGUE.slice(reset_at);
    exchanges.push(await exchange(service, reset!, saved));
    at += 1000;
    const errors = await recordErrors(service);
    // The clock of a sandbox is computed from the server's time.
    await setServerTime(service.sql, at);
    for (const request of last) exchanges.push(await exchange(service, request, saved));
    const examples = {
      operations: Object.fromEntries(ADDRESSES.map(({ id }) => [id, examplesOf(id, exchanges)])),
      components: { ...errors, ...events },
    };
    const text = JSON.stringify(examples)
      .replaceAll(receiver_url, "https://example.com/webhooks")
      .replace(/"duration_ms":[\d.]+/g, '"duration_ms":100')
      // The repository contains no text that looks like a key.
      .replace(/"(sk_test_\w{4})\w{45}"/g, '"$1…"');
    return JSON.parse(text);
  } finally {
    await service.close();
  }
}

function examplesOf(operation: string, exchanges: readonly Exchange[]): OperationExamples {
  const own = exchanges.filter((exchange): exchange is Exchange & { summary: string } =>
    exchange.operation === operation && exchange.summary !== undefined
  );
  const sent = own.filter(({ request }) => request !== undefined);
  const responses_max = WITH_ONE_RESPONSE.includes(operation) ? 1 : RESPONSES_MAX;
  const successes = own.filter(({ status }) => status < 300).slice(0, responses_max);
  return {
    requests: named(sent.map((exchange) => ({ ...exchange, value: exchange.request! }))),
    responses: named(successes.map((exchange) => ({ ...exchange, value: exchange.response }))),
  };
}

/** Examples by name, or undefined without any. */
function named(
  list: readonly { name: string; summary: string; value: Json }[],
): OperationExamples["requests"] {
  if (list.length === 0) return undefined;
  return Object.fromEntries(list.map(({ name, summary, value }) => [name, { summary, value }]));
}

async function exchange(
  service: TestService,
  request: CatalogueRequest,
  saved: Saved,
): Promise<Exchange> {
  const { method, path, body, options } = fill(request, saved);
  const response = await service.call(method, path, options);
  keep(request, response, saved);
  // The position of a sandbox depends on ids of transactions.
  if (request.operation === "readChanges") response.body.next_cursor = `chg_${"0a".repeat(16)}`;
  return { ...request, request: body, status: response.status, response: response.body };
}

async function recordEvents(service: TestService): Promise<Examples["components"]> {
  const events: Examples["components"] = {};
  for (const type of EVENT_TYPES) {
    // The networks renew no card of a sandbox.
    if (type === "instrument.updated") continue;
    const body = await service.get(`/api-v1-payments/v1/events?type=${type}&limit=1`);
    assert.ok(body.data[0], `no event of the kind ${type}`);
    events[eventExampleName(type)] = { value: body.data[0] };
  }
  return events;
}

/** Provokes every error. */
async function recordErrors(service: TestService): Promise<Examples["components"]> {
  const card = (number: string) => ({ number, exp_month: 12, exp_year: 2034, cvc: "123" });
  const pay = (number: string) => service.pay({ card: card(number) });
  const completed = (await service.pay({ outcome: "success" })).body.id;
  const action = (await pay("4000 0025 0000 3155")).body.id;
  const reader = await service.issueKey(service.key.environment_id, { scopes: ["payments:read"] });
  const text = { headers: { "Content-Type": "text/plain" }, body: "amount=1" };
  const cases: [ErrorCode, () => Promise<TestResponse>][] = [
    ["invalid_parameter", () => pay("4000 0000 0000 0069")],
    ["invalid_json", () => service.call("POST", PAYMENTS, { body: '{"amount": 1999,}' })],
    ["unauthorized", () => service.call("GET", PAYMENTS, { key: null })],
    ["payment_declined", () => pay("4000 0000 0000 0002")],
    ["insufficient_funds", () => pay("4000 0000 0000 9995")],
    ["aml_blocked", () => pay("4100 0000 0000 0019")],
    [
      "authentication_failed",
      () =>
        service.call("POST", `/api-v1-sandbox/payments/${action}/authenticate`, {
          body: { result: "failure" },
        }),
    ],
    ["authentication_required", async () => {
      const saved = await service.pay({
        card: { token: "pm_card_authenticationRequired" },
        customer: { id: "customer-8", email: "ada@example.com" },
        save: "off_session",
      });
      const { id, instrument_id: instrument } = saved.body;
      await service.call("POST", `/api-v1-sandbox/payments/${id}/authenticate`);
      return service.pay({ instrument, off_session: true });
    }],
    ["balance_insufficient", () =>
      service.call("POST", "/api-v1-payments/v1/transfers", {
        body: {
          amount: 999_999_999,
          currency: "EUR",
          destination: { iban: "DE89 3704 0044 0532 0130 00" },
        },
      })],
    ["test_key_required", () => service.make({}, { key: service.live.text })],
    ["permission_denied", () => service.pay({}, { key: reader.text })],
    [
      "origin_not_allowed",
      () => service.pay({}, { headers: { Origin: "https://elsewhere.example" } }),
    ],
    ["not_found", () => service.call("GET", `${PAYMENTS}/pay_${"0".repeat(26)}`)],
    ["method_not_allowed", () => service.call("DELETE", PAYMENTS)],
    ["idempotency_conflict", async () => {
      await service.pay({}, { idempotency_key: "order-1001" });
      return service.pay({ amount: 2000 }, { idempotency_key: "order-1001" });
    }],
    ["idempotency_in_progress", () => inProgress(service)],
    ["invalid_state", () => service.call("POST", `${PAYMENTS}/${completed}/cancel`)],
    ["payload_too_large", () => service.pay({ description: "x".repeat(66_000) })],
    ["unsupported_media_type", () => service.call("POST", PAYMENTS, text)],
    ["rate_limited", () =>
      inOther({ rate_limit: 1 }, async (other) => {
        for (let i = 0; i < 2; i++) await other.call("GET", PAYMENTS);
        return other.call("GET", PAYMENTS);
      })],
    ["internal_error", () =>
      inOther({}, async (other) => {
        await other.sql`drop function pay.balance`;
        return other.call("GET", "/api-v1-payments/v1/balance");
      })],
    [
      "service_unavailable",
      () => inOther({ database_url: NO_DATABASE }, (other) => other.call("GET", PAYMENTS)),
    ],
    ["provider_not_configured", () => service.pay({}, { key: service.live.text })],
    // The functions have no such variable, so they refuse the call themselves.
    ["provider_refused", async () => {
      await addAccount(service.sql, service.live.environment_id);
      return service.pay({ card: { token: "pm_card_visa" } }, { key: service.live.text });
    }],
  ];
  assert.deepEqual(cases.map(([code]) => code).sort(), [...ERROR_CODES].sort());
  const errors: Examples["components"] = {};
  for (const [code, provoke] of cases) {
    const { body } = await provoke();
    assert.equal(body.error.code, code);
    // No operation returns this code: it means that the path has no operation for the method.
    if (code !== "method_not_allowed") errors[errorExampleName(code)] = { value: body };
  }
  return errors;
}

/** The response to a concurrent duplicate of a request in progress. */
async function inProgress(service: TestService): Promise<TestResponse> {
  const body = { amount: 1000, currency: "EUR" };
  await using _ = await claimKey(
    service,
    "order-1002",
    fingerprint("POST", PAYMENTS, body),
    "{}",
  );
  return await service.call("POST", PAYMENTS, { body, idempotency_key: "order-1002" });
}

/** Calls another instance of the service, which the call may break. */
async function inOther(
  options: Parameters<typeof startService>[0],
  ask: (other: TestService) => Promise<TestResponse>,
): Promise<TestResponse> {
  const other = await startService({ random: seeded(2), clock: () => STARTED_AT, ...options });
  try {
    return await ask(other);
  } finally {
    await other.close();
  }
}

/** Opens a receiver that accepts every webhook, always with the same bytes. */
function listen() {
  const server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    () => new Response(null, { status: 204, headers: { Date: "Fri, 20 Nov 2026 09:01:11 GMT" } }),
  );
  return {
    url: `http://127.0.0.1:${server.addr.port}/`,
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}

/** The same bytes in every run (mulberry32). */
function seeded(seed: number) {
  return (bytes: Uint8Array) => {
    for (let i = 0; i < bytes.length; i++) {
      seed = seed + 0x6D2B79F5 | 0;
      let mixed = Math.imul(seed ^ seed >>> 15, 1 | seed);
      mixed = mixed + Math.imul(mixed ^ mixed >>> 7, 61 | mixed) ^ mixed;
      bytes[i] = (mixed ^ mixed >>> 14) & 255;
    }
    return bytes;
  };
}
