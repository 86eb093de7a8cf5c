/**
 * Tests at Stripe itself, in the test mode of the account of STRIPE_TEST_KEY. Only
 * `deno task test --live-card` runs them. STRIPE_TEST_URL names a double in place of Stripe.
 */

import assert from "node:assert/strict";
import { callStripe, isUnknown } from "../../../shared/connectors/stripe/stripe_call.ts";
import { stripeConnector } from "../../../shared/connectors/stripe/stripe_connector.ts";
import { idGenerator } from "../../../shared/core/ids.ts";
import type {
  Operation,
  ProviderAccount,
  ProviderEvent,
  ProviderReply,
  ProviderTotal,
} from "../../../shared/domain/providers/connector.ts";
import type { Refund } from "../../../shared/schema/refund.ts";
import { until } from "../common/until.ts";
import { account, type Members, operation } from "../connectors/stripe_case.ts";

/** An operation with its reply. */
export interface Sent {
  operation: Operation;
  reply: ProviderReply;
}

const is_requested = Deno.env.get("LIVE_CARD") === "1";
const test_url = Deno.env.get("STRIPE_TEST_URL");
if (!is_requested) {
  console.warn(
    "Tests at Stripe itself are not run: STRIPE_TEST_KEY=sk_test_… deno task test --live-card",
  );
}

/** The time in which Stripe makes events and disputes of its test cards. */
const LATER_MS = 90_000;
const connector = stripeConnector();
/** The account whose key STRIPE_TEST_KEY is. */
export const ACCOUNT: ProviderAccount = account({
  secret: Deno.env.get("STRIPE_TEST_KEY") ?? null,
  settings: test_url === undefined ? {} : { base_url: test_url },
});

/** Registers a test. `only_stripe`: a double cannot do this, so the test needs Stripe. */
export function liveCard(
  name: string,
  fn: (t: Deno.TestContext) => Promise<void>,
  { only_stripe = false } = {},
): void {
  Deno.test({ name, fn, ignore: !is_requested || (only_stripe && test_url !== undefined) });
}

/** Sends an authorization of 10.99 EUR with a new key. */
export async function authorize(
  token: string,
  terms: Members = {},
  more: Partial<Operation> = {},
): Promise<Sent> {
  const newId = idGenerator(Date.now());
  return await send(operation({
    id: newId("pc_"),
    request: { token },
    created_at: new Date().toISOString(),
    ...more,
  }, { id: newId("pay_"), ...terms }));
}

/** Sends a capture, cancel or refund of an authorized payment, or ends an abandoned one. */
export async function change(
  { operation: { subject, currency }, reply }: Sent,
  op: "capture" | "cancel" | "refund" | "abandon",
  amount_minor = 1099,
): Promise<Sent> {
  const newId = idGenerator(Date.now());
  const { provider_reference } = eventOf(reply);
  return await send(operation({
    id: newId("pc_"),
    op,
    amount_minor,
    currency,
    subject,
    refund: op === "refund" ? { id: newId("re_") } as Refund : null,
    request: { token: null },
    provider_reference,
    created_at: new Date().toISOString(),
  }));
}

/** Sends an operation. */
export async function send(requested: Operation): Promise<Sent> {
  return {
    operation: requested,
    reply: await connector.charges.send(ACCOUNT, requested, deadline()),
  };
}

/** Syncs an operation. */
export async function sync(requested: Operation): Promise<ProviderReply> {
  return await connector.charges.sync(ACCOUNT, requested, deadline());
}

/** Returns the first provider event of a reply. */
export function eventOf(reply: ProviderReply): ProviderEvent {
  assert.ok("provider_events" in reply, JSON.stringify(reply));
  return reply.provider_events[0];
}

/** Polls until Stripe lists a provider event. */
export async function polled(
  what: string,
  is_it: (event: ProviderEvent) => boolean,
): Promise<ProviderEvent> {
  let found: ProviderEvent | undefined;
  await until(`Stripe lists ${what}`, async () => {
    let cursor: unknown = null;
    for (let more = true; more && !found;) {
      const page = await connector.feed.poll(ACCOUNT, cursor, deadline());
      found = page.provider_events.find(is_it);
      ({ cursor, more } = page);
    }
    return found !== undefined;
  }, LATER_MS);
  return found!;
}

/** Waits until a sync shows a state. A refund that fails later shows its success too. */
export async function syncShows(
  requested: Operation,
  state: ProviderEvent["state"],
): Promise<void> {
  await until(`${requested.op} is ${state}`, async () => {
    const reply = await sync(requested);
    return "provider_events" in reply &&
      reply.provider_events.some((event) => event.state === state);
  }, LATER_MS);
}

/** Makes a request without the connector. Throws unless Stripe responds with JSON. */
export async function request(method: "GET" | "POST", path: string, form: [string, string][]) {
  const response = await callStripe(ACCOUNT, { method, path, fields: form }, deadline());
  assert.ok(!isUnknown(response), JSON.stringify(response));
  return response;
}

/** Makes the call that `deno task providers test` makes. */
export async function testCall(): Promise<string> {
  return await connector.test(ACCOUNT, deadline());
}

/** Reads the totals of the last hour. */
export async function totals(): Promise<ProviderTotal[]> {
  const to_ms = Date.now();
  const time = { from_ms: to_ms - 3_600_000, to_ms };
  for (let cursor: unknown = null;;) {
    const page = await connector.feed.totals(ACCOUNT, time, cursor, deadline());
    if ("totals" in page) return page.totals;
    ({ cursor } = page);
  }
}

function deadline(): AbortSignal {
  return AbortSignal.timeout(20_000);
}
