/** Fills a database through calls of the service, with rows in every table. */

import type { RecordingReceiver } from "../webhook/recording_receiver.ts";
import type { FixtureService } from "./fixture_service.ts";
import { CATALOGUE } from "../catalogue/requests.ts";
import { fill as fillRequest, firstValues, keep } from "../catalogue/run_catalogue.ts";
import { APPROVED_CARD } from "../service/service.ts";
import { PAYMENTS, SANDBOX } from "../service/service_case.ts";

const API = "/api-v1-payments/v1";
const MINUTE = 60_000;
/** Time from the beginning to the end of the filling, by the clock of the service. */
const DURATION_MS = 60 * MINUTE;

const CARD = { currency: "EUR", card: APPROVED_CARD };
const IBAN = { iban: { iban: "DE89 3704 0044 0532 0130 00" } };

/** The stored data that tests use later. */
export interface Filled {
  /** The clock of the service at the end. */
  at_ms: number;
  /** Working secrets of API keys. */
  keys: { sandbox: string; catalogue: string; reset: string; live: string };
  /** A completed payment of the sandbox. */
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
  await service.setClock(start_ms + 30 * MINUTE);
  await fillCatalogue(service, receiver, keys.catalogue, start_ms);
  await fillReset(service, keys.reset);
  for (const key of [keys.live, keys.sandbox]) {
    const body = { url: "https://hooks.example.com/", events: ["ping"] };
    await service.done("POST", `${API}/webhook_endpoints`, { key, body });
  }
  const { id } = await service.done("POST", PAYMENTS, {
    key: keys.sandbox,
    body: { amount: 100_000, ...CARD, metadata: { text: 'ü \\ " $rows$ \u2028' } },
  });
  const keyed = await fillResponses(service, keys.sandbox, id);
  await service.settle();
  await service.setClock(end_ms);
  const waiting = await fillWaitingDelivery(service, receiver, keys.sandbox);
  await fillOperator(service);
  return { at_ms: end_ms, keys, payment_id: id, waiting, keyed };
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
    [`${API}/webhook_endpoints`, { url: "https://hooks.example.com/", events: ["ping"] }],
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
