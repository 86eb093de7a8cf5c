/** Fills a database through calls of the service, with rows in every table. */

import type { RecordingReceiver } from "../webhook/recording_receiver.ts";
import type { FixtureService } from "./fixture_service.ts";
import { CATALOGUE } from "../catalogue/requests.ts";
import { fill as fillRequest, firstValues, keep } from "../catalogue/run_catalogue.ts";
import { APPROVED_CARD } from "../service/service.ts";
import { PAYMENTS, SANDBOX } from "../service/service_case.ts";
import { ROUTES } from "../service/status_routes.ts";

const API = "/api-v1-payments/v1";
const SECOND = 1000;
const MINUTE = 60 * SECOND;
/** Time from the beginning to the end of the filling, by the clock of the service. */
const DURATION_MS = 60 * MINUTE;

const CARD = { currency: "EUR", card: APPROVED_CARD };
const IBAN = { iban: { iban: "DE89 3704 0044 0532 0130 00" } };
/** Fields without an instrument, with which a payment stays pending. */
const PENDING: Record<string, unknown>[] = [
  { currency: "EUR", method_kind: "card" },
  { currency: "EUR", method_kind: "sepa" },
  { currency: "JPY", method_kind: "swift" },
  { currency: "EUR", method_kind: "stablecoin" },
];

/** The stored data that tests use later. */
export interface Filled {
  /** The clock of the service at the end. */
  at_ms: number;
  /** Working secrets of API keys. */
  keys: { sandbox: string; catalogue: string; reset: string; live: string };
  /** A completed payment of the sandbox, with a delivery that has arrived. */
  payment_id: string;
  /** An endpoint with a pending delivery, because its receiver returned 503. */
  waiting: { endpoint_id: string; secret: string; event_id: string };
  /** Keyed requests, with their responses. */
  keyed: KeyedRequest[];
}

/** A request that a client may send again. */
interface KeyedRequest {
  path: string;
  idempotency_key: string;
  body: unknown;
  status: number;
  response: string;
}

/** Fills the database; the clock of the service goes from an hour ago to now. */
export async function fill(
  service: FixtureService,
  receiver: RecordingReceiver,
  end_ms: number,
): Promise<Filled> {
  const start_ms = end_ms - DURATION_MS;
  await service.setClock(start_ms);
  const keys = {
    sandbox: await service.issueKey("acme", false),
    catalogue: await service.issueKey("catalogue", false),
    reset: await service.issueKey("other", false),
    live: await service.issueKey("acme", true),
  };
  await fillFailedDelivery(service, receiver, keys.sandbox, start_ms);
  await service.setClock(start_ms + 30 * MINUTE);
  const payment_id = await fillPayments(service, receiver, keys.sandbox);
  await fillCatalogue(service, receiver, keys.catalogue, start_ms);
  await fillReset(service, keys.reset);
  await service.done("POST", `${API}/webhook_endpoints`, {
    key: keys.live,
    body: { url: "https://hooks.example.com/live", events: ["*"] },
  });
  const keyed = await fillResponses(service, keys.sandbox, payment_id);
  await service.settle();
  await service.setClock(end_ms);
  const waiting = await fillWaitingDelivery(service, receiver, keys.sandbox);
  await fillOperator(service);
  return { at_ms: end_ms, keys, payment_id, waiting, keyed };
}

/** Makes deliveries that fail at every attempt, and endpoints that are disabled or deleted. */
async function fillFailedDelivery(
  service: FixtureService,
  receiver: RecordingReceiver,
  key: string,
  start_ms: number,
): Promise<void> {
  receiver.judge = () => 500;
  const endpoint = await service.done("POST", `${API}/webhook_endpoints`, {
    key,
    body: { url: receiver.url("/failing"), events: ["payment.completed"] },
  });
  await service.done("POST", `${SANDBOX}/payments`, {
    key,
    body: { amount_minor: 500, currency: "EUR", outcome: "success" },
  });
  // The attempts of the sandbox's retry schedule (contract §4).
  for (const after_ms of [0, 6 * SECOND, 2 * MINUTE, 15 * MINUTE]) {
    await service.setClock(start_ms + after_ms);
    await service.settle();
  }
  await service.done("PUT", `${API}/webhook_endpoints/${endpoint.id}`, {
    key,
    body: { status: "disabled" },
  });
  const gone = await service.done("POST", `${API}/webhook_endpoints`, {
    key,
    body: { url: receiver.url("/gone"), events: ["refund.*"] },
  });
  await service.done("DELETE", `${API}/webhook_endpoints/${gone.id}`, { key });
  receiver.judge = () => 200;
}

/** Makes payments of every method in every status, whose deliveries arrive. Returns a completed one. */
async function fillPayments(
  service: FixtureService,
  receiver: RecordingReceiver,
  key: string,
): Promise<string> {
  await service.done("POST", `${API}/webhook_endpoints`, {
    key,
    body: { url: receiver.url("/good"), events: ["*"], description: "All", metadata: { a: "b" } },
  });
  for (const method of PENDING) {
    for (const [status, { then: to, refund, ...options }] of Object.entries(ROUTES)) {
      // Only a card can be authorized before its capture.
      if (status === "authorized" && method["method_kind"] !== "card") continue;
      const { id } = await service.done("POST", `${SANDBOX}/payments`, {
        key,
        body: { amount: 1999, reference: `order-${status}`, ...method, ...options },
      });
      if (to) {
        await service.done("POST", `${SANDBOX}/payments/${id}/advance`, { key, body: { to } });
      }
      if (refund) {
        await service.done("POST", `${PAYMENTS}/${id}/refund`, { key, body: { amount: refund } });
      }
    }
  }
  const { id } = await service.done("POST", PAYMENTS, {
    key,
    body: { amount: 100_000, ...CARD, metadata: { text: 'ü \\ " $rows$ \u2028' } },
  });
  await service.settle();
  return id;
}

/** Sends the catalogue, which leaves resources of every kind in each of their states. */
async function fillCatalogue(
  service: FixtureService,
  receiver: RecordingReceiver,
  key: string,
  since_ms: number,
): Promise<void> {
  const saved = firstValues(receiver.url("/catalogue"));
  saved.set("since", new Date(since_ms).toISOString());
  const reset_at = CATALOGUE.findIndex(({ operation }) => operation === "resetSandbox");
  for (const request of CATALOGUE.slice(0, reset_at)) {
    // The service of a fixture logs no requests.
    if (["listRequests", "getRequest"].includes(request.operation)) continue;
    const { method, path, options } = fillRequest(request, saved);
    keep(request, await service.call(method, path, { ...options, key }), saved);
  }
}

/** Fills a sandbox, resets it and fills it again. */
async function fillReset(service: FixtureService, key: string): Promise<void> {
  const body = { amount: 700, ...CARD };
  for (let i = 0; i < 3; i++) await service.done("POST", PAYMENTS, { key, body });
  await service.done("POST", `${SANDBOX}/reset`, { key, idempotency_key: "reset" });
  await service.done("POST", PAYMENTS, { key, body });
}

async function fillResponses(
  service: FixtureService,
  key: string,
  payment_id: string,
): Promise<KeyedRequest[]> {
  const requests: [path: string, body: unknown][] = [
    [PAYMENTS, { amount: 300, ...CARD }],
    [PAYMENTS, { amount: 300, ...CARD, outcome: "declined" }],
    [`${PAYMENTS}/${payment_id}/refund`, { amount: 5 }],
    [`${API}/transfers`, { amount: 7, currency: "EUR", destination: IBAN }],
    [`${API}/webhook_endpoints`, { url: "https://hooks.example.com/keyed", events: ["*"] }],
  ];
  const keyed: KeyedRequest[] = [];
  for (const [i, [path, body]] of requests.entries()) {
    const idempotency_key = `upgrade-${i}`;
    const response = await service.call("POST", path, { key, body, idempotency_key });
    keyed.push({ path, idempotency_key, body, status: response.status, response: response.text });
  }
  return keyed;
}

/** Makes a delivery that waits for its second attempt. */
async function fillWaitingDelivery(
  service: FixtureService,
  receiver: RecordingReceiver,
  key: string,
): Promise<Filled["waiting"]> {
  const { data } = await service.done("GET", `${API}/webhook_endpoints?limit=100`, { key });
  for (const { id, status } of data) {
    if (status === "disabled") continue;
    const body = { events: ["transfer.failed"] };
    await service.done("PUT", `${API}/webhook_endpoints/${id}`, { key, body });
  }
  receiver.judge = () => 503;
  const { id, secret } = await service.done("POST", `${API}/webhook_endpoints`, {
    key,
    body: { url: receiver.url("/away"), events: ["payment.completed"] },
  });
  await service.done("POST", PAYMENTS, { key, body: { amount: 4200, ...CARD } });
  await service.settle();
  const pending = await service.done(
    "GET",
    `${API}/webhook_deliveries?endpoint_id=${id}&status=pending`,
    { key },
  );
  return { endpoint_id: id, secret, event_id: pending.data[0].event_id };
}

/** Stores settings of the operator and breaches of the hourly job. */
async function fillOperator({ sql }: FixtureService): Promise<void> {
  const url = "https://ref.supabase.co/functions/v1/api-v1-payments/internal/relay";
  await sql`select pay.configure_relay(${url}, ${"token-of-a-relay-that-is-nowhere"})`;
  await sql`select pay.note_breaches()`;
  await sql`insert into pay.invariant_breaches (environment_id, invariant, subject_id, detail)
    select id, 'invariant_refunds', 'pay_x', 'An old breach' from pay.environments limit 1`;
}
