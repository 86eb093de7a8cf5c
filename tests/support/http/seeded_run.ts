/**
 * The requests of a run in a seeded sandbox: the catalogue with the ids of earlier responses, and
 * mistakes. They have no random value, so a second run sends the same requests.
 */

import { CATALOGUE } from "../catalogue/requests.ts";
import { fill, saveId } from "../catalogue/run_catalogue.ts";
import type { TestResponse } from "../service/service.ts";

/** Sends one request of the run with the key of its sandbox, and counts it. */
export type Send = (
  method: string,
  path: string,
  options?: { body?: unknown; idempotency_key?: string },
) => Promise<TestResponse>;

const V1 = "/api-v1-payments/v1";
const SANDBOX = "/api-v1-sandbox";

/** Operations of the catalogue that a run leaves out. */
export const LEFT_OUT: Readonly<Record<string, string>> = {
  listRequests: "it has real times, and requests are written behind their responses",
  getRequest: "it is an entry of that list",
  readTranscript: "it is no part of a run",
  readChanges: "it is no part of a run",
  resetSandbox: "it begins the run again, so no transcript has it",
};
/** Requests of the catalogue whose responses depend on the real time or on the speed of a receiver. */
const WITH_REAL_TIME = [
  "createWebhookEndpoint receiver",
  "triggerWebhook inbox",
  "createFault late_webhooks",
  "createFault provider_timeout",
  "setClock advance",
  "setClock real",
];

const CARD = { exp_month: 12, exp_year: 2034, cvc: "123" };
/** Instruments that the catalogue does not have. */
const INSTRUMENTS = [
  { card: { ...CARD, number: "4100 0000 0000 0019" } },
  { card: { ...CARD, number: "4000 0000 0000 0069" } },
  {
    iban: "DE89 3704 0044 0532 0130 00",
    mandate: { id: "M-1", signed_at: "2029-12-01", sequence: "recurring" },
  },
  {
    ...{ iban: "DE89 3704 0044 0532 0130 00", mandate: { signed_at: "2029-12-01" } },
    ...{ customer: { id: "customer-8", email: "b@example.com" }, save: "off_session" },
  },
  { wallet: "0x000000000000000000000000000000000000dEaD" },
];

/** Lists whose items follow from the requests. */
const LISTS = [
  "payments",
  "instruments",
  "checkouts",
  "refunds",
  "transfers",
  "disputes",
  "events",
  "ledger_entries",
  "webhook_endpoints",
  "webhook_deliveries",
  "api_keys",
];

/** An id of each kind that no run has. */
const UNKNOWN = "0".repeat(26);

/** Sends the requests of one round. */
export async function runRound(send: Send, round: number): Promise<void> {
  const clock = await send("GET", `${SANDBOX}/clock`);
  const saved = new Map([["since", clock.body.now]]);
  for (const { key, ...request } of CATALOGUE) {
    const { operation, name } = request;
    if (operation in LEFT_OUT || WITH_REAL_TIME.includes(`${operation} ${name}`)) continue;
    // The older of two secrets of the same time is not known.
    if (operation === "rotateApiKey") await advance(send, 1);
    const { method, path, options } = fill(
      key === undefined ? request : { ...request, key: `${key}-${round}` },
      saved,
    );
    const response = await send(method, path, options);
    if (response.status < 300) saveId(request, response.body, saved);
  }
  await send("GET", `${V1}/events?instrument_id=${saved.get("instrument")}`);
  const paid = { amount: 1000 + round, currency: "EUR" };
  for (const instrument of INSTRUMENTS) {
    await send("POST", `${V1}/payments`, { body: { ...paid, ...instrument } });
  }
  const twice = { body: paid, idempotency_key: `twice-${round}` };
  for (const body of [paid, paid, { ...paid, amount: 1 }]) {
    await send("POST", `${V1}/payments`, { ...twice, body });
  }
  await mistakes(send);
  await declaredFault(send, paid);
  // A payment that waits for the payer expires.
  await advance(send, 86_400);
  for (const list of LISTS) {
    const page = await send("GET", `${V1}/${list}?limit=3`);
    const { next_cursor } = page.body;
    if (next_cursor !== null) {
      await send("GET", `${V1}/${list}?limit=2&starting_after=${next_cursor}`);
    }
  }
}

async function advance(send: Send, seconds: number): Promise<void> {
  await send("POST", `${SANDBOX}/clock`, { body: { advance: seconds } });
}

/** A fault that happens once: the first of two creates is refused. */
async function declaredFault(send: Send, body: unknown): Promise<void> {
  const where = { method: "POST", path: "/v1/payments" };
  const declared = await send("POST", `${SANDBOX}/faults`, {
    body: { on: "request", fault: "rate_limited", where },
  });
  for (let i = 0; i < 2; i++) await send("POST", `${V1}/payments`, { body });
  await send("GET", `${SANDBOX}/faults/${declared.body.id}`);
}

async function mistakes(send: Send): Promise<void> {
  await send("POST", `${V1}/payments`, { body: { amount: -1, currency: "EUR" } });
  await send("POST", `${V1}/payments`, { body: "not an object" });
  await send("GET", `${V1}/payments/pay_${UNKNOWN}`);
  await send("GET", `${V1}/nothing`);
  await send("POST", `${SANDBOX}/sandboxes`, { body: { seed: "another" } });
}
