/**
 * Registers tests with a service of their own. Exports the values that their tables of cases share:
 * addresses, test values, and a payment in any status.
 */

import assert from "node:assert/strict";
import { CODES } from "../core/error_codes.ts";
import type { PaymentStatus } from "../../../shared/schema/statuses.ts";
import {
  APPROVED_CARD,
  type CallOptions,
  DOCS_URL,
  startService,
  type TestResponse,
  type TestService,
} from "./service.ts";

export const PAYMENTS = "/api-v1-payments/v1/payments";
export const REFUNDS = "/api-v1-payments/v1/refunds";
export const LEDGER = "/api-v1-payments/v1/ledger_entries";
export const SANDBOX = "/api-v1-sandbox";
/** The longest advance of a clock. */
const MAX_ADVANCE_S = 400 * 86_400;

/** An approved instrument of each kind, as a create takes it. */
export const APPROVED = {
  card: { card: APPROVED_CARD },
  sepa: { iban: "DE89 3704 0044 0532 0130 00" },
  swift: { iban: "GB82 WEST 1234 5698 7654 32" },
  stablecoin: { wallet: "0x000000000000000000000000000000000000dEaD" },
} as const;
type Kind = keyof typeof APPROVED;
export const KINDS = Object.keys(APPROVED) as Kind[];

/** A card with another number or other fields than the approved one. */
export function card(fields: Partial<typeof APPROVED_CARD> | string): Record<string, unknown> {
  return {
    card: { ...APPROVED_CARD, ...(typeof fields === "string" ? { number: fields } : fields) },
  };
}

/** Registers a test with a service of its own. Each step is one case. */
export function serviceCase(
  name: string,
  run: (t: Deno.TestContext, service: TestService) => Promise<void>,
  options: Parameters<typeof startService>[0] = {},
): void {
  Deno.test(name, async (t) => {
    await using service = await startService(options);
    await run(t, service);
  });
}

/** A service whose calls have the key of one sandbox. Its creates of payments are of 10 EUR. */
export function within(service: TestService, key: string) {
  const call = (method: string, path: string, options: CallOptions = {}) =>
    service.call(method, path, { key, ...options });
  const post = (path: string, body: Record<string, unknown> = {}, idempotency_key?: string) =>
    call("POST", path, { body, ...(idempotency_key !== undefined && { idempotency_key }) });
  const pay = (body: Record<string, unknown> = {}, idempotency_key?: string) =>
    post(PAYMENTS, { amount: 1000, currency: "EUR", ...body }, idempotency_key);
  return { call, post, pay };
}

/** Advances a payment. Returns the response, whatever its status. */
export function advance(
  service: TestService,
  id: string,
  to: string,
  options: CallOptions = {},
): Promise<TestResponse> {
  return service.call("POST", `${SANDBOX}/payments/${id}/advance`, { ...options, body: { to } });
}

/**
 * Sends a command to the clock of the sandbox, and goes on until the clock is there. Returns the
 * last response.
 */
export async function commandClock(
  service: TestService,
  command: Record<string, unknown>,
  options: CallOptions = {},
) {
  for (let body = command;;) {
    const clock = await service.post(`${SANDBOX}/clock`, body, options);
    if (!clock.has_more) return clock;
    body = { to: clock.target };
  }
}

/** Advances the clock of the sandbox by so many seconds, in steps that it takes. */
export async function advanceClock(service: TestService, seconds: number): Promise<void> {
  for (let left = seconds; left > 0; left -= MAX_ADVANCE_S) {
    await commandClock(service, { advance: Math.min(left, MAX_ADVANCE_S) });
  }
}

/** The requests that bring a payment to a status. To the others an advance leads from `pending`. */
const ROUTES: Partial<
  Record<PaymentStatus, { outcome: string; capture?: string; refund?: number }>
> = {
  pending: { outcome: "pending" },
  authorized: { outcome: "success", capture: "manual" },
  completed: { outcome: "success" },
  declined: { outcome: "declined" },
  partially_refunded: { outcome: "success", refund: 400 },
  refunded: { outcome: "refunded" },
  chargeback: { outcome: "chargeback" },
};

/** Makes a payment of 1000 in a status and returns it. `partially_refunded`: a refund of 400. */
export async function paymentIn(
  service: TestService,
  status: string,
  body: Record<string, unknown> = {},
  // deno-lint-ignore no-explicit-any
): Promise<any> {
  const { refund, ...options } = ROUTES[status as PaymentStatus] ?? { outcome: "pending" };
  const made = await service.make({ ...body, ...options });
  assert.equal(made.status, 201, made.text);
  const { id } = made.body;
  if (!(status in ROUTES)) assert.equal((await advance(service, id, status)).status, 200);
  if (refund) await service.post(`${PAYMENTS}/${id}/refund`, { amount: refund });
  const payment = await service.get(`${PAYMENTS}/${id}`);
  assert.equal(payment.status, status);
  return payment;
}

/** Asserts the headers that every response has, and the form of the request id. */
export function assertCommonHeaders({ headers }: TestResponse): void {
  assert.equal(headers.get("Cache-Control"), "no-store");
  assert.equal(headers.get("X-Content-Type-Options"), "nosniff");
  assert.match(headers.get("Request-Id") ?? "none", /^req_[0-9a-z]{26}$/);
}

/**
 * Asserts that a response is the error of a code, with all its members.
 * @param param the field that the error names, if it names one
 */
export function assertRefused(response: TestResponse, code: string, param?: string): void {
  const { status, headers, text, body } = response;
  const [expected, type] = CODES[code]!;
  assert.deepEqual([status, body?.error?.code, body?.error?.param], [expected, code, param], text);
  assertCommonHeaders(response);
  assert.equal(headers.get("Content-Type"), "application/json");
  assert.deepEqual(Object.keys(body), ["error"]);
  const { error } = body;
  assert.equal(error.type, type);
  assert.equal(error.doc_url, `${DOCS_URL}/errors.html#${code}`);
  assert.equal(error.request_id, headers.get("Request-Id"));
  const members = ["type", "code", "message", ...(param === undefined ? [] : ["param"])]
    .concat("request_id", "doc_url");
  assert.deepEqual(Object.keys(error).slice(0, members.length), members);
  assert.equal(headers.get("WWW-Authenticate"), status === 401 ? "Bearer" : null);
  const waits = status === 503 && code !== "provider_not_configured" || status === 429;
  if (waits) assert.match(headers.get("Retry-After") ?? "none", /^[1-9]\d*$/);
  if (code !== "invalid_state") return;
  // The types of the client promise both.
  assert.equal(typeof error.current_status, "string", text);
  assert.ok(Array.isArray(error.allowed), text);
}

/** Asserts that a response is the stored one of the first request. */
export function assertReplay(again: TestResponse, first: TestResponse, name?: string): void {
  assert.deepEqual([again.status, again.text], [first.status, first.text], name);
  assert.equal(again.headers.get("Idempotent-Replayed"), "true", name);
  for (const header of ["Location", "Content-Type", "Cache-Control"]) {
    assert.equal(again.headers.get(header), first.headers.get(header), name);
  }
  assert.notEqual(again.headers.get("Request-Id"), first.headers.get("Request-Id"), name);
}
