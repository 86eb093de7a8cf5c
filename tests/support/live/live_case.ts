/**
 * Tests of live keys: the product with an account at the double of Stripe, and actions of payers
 * and of people with the provider's dashboard.
 */

import assert from "node:assert/strict";
import type { Settings } from "../../../shared/functions/settings.ts";
import { until } from "../common/until.ts";
import { addAccount } from "../database/provider_flow.ts";
import { startSecondService } from "../service/second_service.ts";
import { no_stripe_double, startStripeDouble, type StripeDouble } from "../stripe/double.ts";
import { type CallOptions, startService, type TestService } from "../service/service.ts";

/** A test's view of the product and its provider. */
export type LiveCase = Awaited<ReturnType<typeof makeCase>>;

/** The secret that signs notifications for a test's account. */
export const NOTIFICATION_SECRET = "whsec_live_case";

let double: StripeDouble | null = null;
let owners = 0;

Deno.test.beforeAll(async () => {
  if (!no_stripe_double) double = await startStripeDouble();
});
Deno.test.afterAll(async () => await double?.close());

/** Registers a test with its own product. Without localstripe it is skipped, or fails in CI. */
export function liveCase(
  name: string,
  test: (given: LiveCase, t: Deno.TestContext) => Promise<void>,
  settings: Partial<Settings> = {},
): void {
  Deno.test({
    name,
    ignore: no_stripe_double,
    async fn(t) {
      assert.ok(double, "localstripe is not installed");
      const variables: Record<string, string> = {
        PROVIDER_STRIPE: `sk_live_${++owners}`,
        PROVIDER_STRIPE_NOTIFICATIONS: NOTIFICATION_SECRET,
      };
      const provider_secret = (name: string) => variables[name];
      const service = await startService({ provider_secret, ...settings });
      try {
        await test(await makeCase(service, double, variables), t);
      } finally {
        await service.close();
      }
    },
  });
}

async function makeCase(
  service: TestService,
  running: StripeDouble,
  variables: Record<string, string>,
) {
  const secret = variables.PROVIDER_STRIPE!;
  const settings = { base_url: running.base_url };
  const account_id = await addAccount(service.sql, service.live.environment_id, { settings });
  const key = service.live.text;
  // Every write has an idempotency key, so that the invariants check each response that is stored.
  const keyed = () => ({ key, idempotency_key: crypto.randomUUID() });
  return {
    ...{ service, double: running },
    /** The account of the live environment, `pac_…`. */
    account_id,
    /** The secret key at the double. */
    secret,
    /** The variables of the functions that begin with `PROVIDER_`. A test can change them. */
    variables,
    /** Creates a live payment of 1000 EUR cents with a token. */
    pay: (body: Record<string, unknown> = {}, options: CallOptions = {}) =>
      service.pay({ card: { token: "pm_card_visa" }, ...body }, { ...keyed(), ...options }),
    /** Calls the payments function with the live key. */
    call: (method: string, path: string, options: CallOptions = {}) =>
      service.call(method, `/api-v1-payments/v1${path}`, {
        ...(method === "GET" ? { key } : keyed()),
        ...options,
      }),
    books: () => running.books(secret),
    /** Runs the worker until it finds no more work. */
    work: () => service.deps.provider_worker.notify(),
  };
}

const RETURN_URL = "https://shop.example/back";
/** The members of a payment whose payer has to authenticate. */
export const CHALLENGED = {
  card: { token: "pm_card_authenticationRequired" },
  return_url: RETURN_URL,
};

/** Creates a payment that waits for its payer. Returns its id and the page of the payer's bank. */
export async function challenged(
  given: LiveCase,
  body: object = {},
): Promise<{ id: string; url: string }> {
  const created = await given.pay({ ...CHALLENGED, ...body });
  assert.equal(created.status, 201, created.text);
  assert.equal(created.body.status, "requires_action");
  return { id: created.body.id, url: created.body.next_action.url };
}

/** Authenticates as the payer does, and goes back to the shop. */
export async function visit(url: string, result = "success"): Promise<void> {
  const page = await fetch(`${url}?result=${result}`, { redirect: "manual" });
  await page.body?.cancel();
  assert.ok(page.headers.get("location")?.startsWith(RETURN_URL), `${page.status}`);
}

/** Returns the id of a payment at the double. */
export async function referenceOf({ books }: LiveCase, id: string): Promise<string> {
  const { payment_intent } = await books();
  return payment_intent.find(({ metadata }) => metadata.payment === id)!.id;
}

/** Pays with a token, and returns the id. */
export async function paid(given: LiveCase, token = "pm_card_visa"): Promise<string> {
  const { status, body } = await given.pay({ card: { token } });
  assert.equal(status, 201);
  await given.work();
  return body.id;
}

/** Makes a product in which the request of a payment dies between its reservation and its record. */
export async function dieDuringOperation(
  given: LiveCase,
  idempotency_key: string,
  more: object = {},
): Promise<void> {
  const { double, service, variables, books } = given;
  const second = startSecondService(service, { provider_secret: (name) => variables[name] });
  const { length } = (await books()).payment_intent;
  // The provider does its work, but its response comes after the death.
  await double.plant({ method: "POST", at: "after", act: "delay", delay_ms: 200 });
  const body = { amount: 1000, currency: "EUR", card: { token: "pm_card_visa" }, ...more };
  const options = { key: service.live.text, idempotency_key, body };
  const dying = second.call("POST", "/api-v1-payments/v1/payments", options);
  await until(
    "the provider has worked",
    async () => (await books()).payment_intent.length > length,
  );
  await second.close();
  assert.equal((await dying).status, 503);
}

/** Refunds a payment. */
export function refund(given: LiveCase, id: string, body: object = {}) {
  return given.call("POST", `/payments/${id}/refund`, { body });
}

/** Calls the double as somebody with the dashboard does. */
export async function atStripe(given: LiveCase, path: string, form: Record<string, string>) {
  const response = await fetch(given.double.base_url + path, {
    method: "POST",
    headers: { Authorization: `Bearer ${given.secret}` },
    body: new URLSearchParams(form),
  });
  assert.equal(response.status, 200, await response.text());
}
