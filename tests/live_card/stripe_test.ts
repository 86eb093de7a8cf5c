/**
 * Tests at Stripe itself, in the test mode of the account of STRIPE_TEST_KEY: requests, replays,
 * declines, 3-D Secure, currencies and captures, and what comes after the payment. Only
 * `deno task test --live-card` runs them. STRIPE_TEST_URL names a double in place of Stripe.
 */

import assert from "node:assert/strict";
import { callStripe, isUnknown } from "../../shared/connectors/stripe/stripe_call.ts";
import { stripeConnector } from "../../shared/connectors/stripe/stripe_connector.ts";
import { STRIPE_EVENT_TYPES } from "../../shared/connectors/stripe/stripe_events.ts";
import { requestOf } from "../../shared/connectors/stripe/stripe_requests.ts";
import { STRIPE_VERSION } from "../../shared/connectors/stripe/stripe_settings.ts";
import { idGenerator } from "../../shared/core/ids.ts";
import type {
  Operation,
  ProviderAccount,
  ProviderEvent,
  ProviderReply,
} from "../../shared/domain/providers/connector.ts";
import type { Refund } from "../../shared/schema/refund.ts";
import { until } from "../support/common/until.ts";
import { account, type Members, operation, patient } from "../support/connectors/stripe_case.ts";

/** An operation with its reply. */
interface Sent {
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
const ACCOUNT: ProviderAccount = account({
  secret: Deno.env.get("STRIPE_TEST_KEY") ?? null,
  settings: test_url === undefined ? {} : { base_url: test_url },
});

/** Registers a test. `only_stripe`: a double cannot do this, so the test needs Stripe. */
function liveCard(
  name: string,
  fn: (t: Deno.TestContext) => Promise<void>,
  { only_stripe = false } = {},
): void {
  Deno.test({ name, fn, ignore: !is_requested || (only_stripe && test_url !== undefined) });
}

/** Sends an authorization of 10.99 EUR with a new key. */
async function authorize(
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
async function change(
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
async function send(requested: Operation): Promise<Sent> {
  return {
    operation: requested,
    reply: await connector.charges.send(ACCOUNT, requested, patient()),
  };
}

/** Syncs an operation. */
async function sync(requested: Operation): Promise<ProviderReply> {
  return await connector.charges.sync(ACCOUNT, requested, patient());
}

/** Returns the first provider event of a reply. */
function eventOf(reply: ProviderReply): ProviderEvent {
  assert.ok("provider_events" in reply, JSON.stringify(reply));
  return reply.provider_events[0];
}

/** Polls until Stripe lists a provider event. */
async function polled(
  what: string,
  is_it: (event: ProviderEvent) => boolean,
): Promise<ProviderEvent> {
  let found: ProviderEvent | undefined;
  await until(`Stripe lists ${what}`, async () => {
    let cursor: unknown = null;
    for (let more = true; more && !found;) {
      const page = await connector.feed.poll(ACCOUNT, cursor, patient());
      found = page.provider_events.find(is_it);
      ({ cursor, more } = page);
    }
    return found !== undefined;
  }, LATER_MS);
  return found!;
}

/** Makes a request without the connector. Throws unless Stripe responds with JSON. */
async function request(method: "GET" | "POST", path: string, form: [string, string][]) {
  const response = await callStripe(ACCOUNT, { method, path, fields: form }, patient());
  assert.ok(!isUnknown(response), JSON.stringify(response));
  return response;
}

liveCard("the test call responds in test mode", async () => {
  assert.match(await connector.test(ACCOUNT, patient()), /in test mode$/);
});

liveCard("the pinned version takes a payment, and shows its fee at once", async () => {
  const { reply } = await authorize("pm_card_visa");
  assert.ok("provider_events" in reply, JSON.stringify(reply));
  assert.equal(reply.provider_events[1]?.op, "fee", "the account must settle in EUR");
});

liveCard("an operation that is sent again is replayed, and marked as such", async () => {
  const first = await authorize("pm_card_visa");
  const request = requestOf(ACCOUNT.environment_id, first.operation);
  assert.ok(!("refused" in request));
  const again = await callStripe(ACCOUNT, request, patient());
  assert.ok(!isUnknown(again), JSON.stringify(again));
  assert.equal(again.replayed, true);
  assert.equal(again.body.id, eventOf(first.reply).provider_reference);
});

liveCard("another request under the same key is a conflict", async () => {
  const { operation } = await authorize("pm_card_visa");
  const { reply } = await send({ ...operation, amount_minor: 1100 });
  assert.deepEqual(reply, { unknown: "idempotency_conflict", may_repeat: false });
});

const ALONE = { return_url: null };
const of = (currency: string, amount_minor: number) => ({ currency, amount_minor });

/** Tokens, with terms and members of the operation, and the reply. */
const REPLIES: [token: string, reply: string, terms?: Members, more?: Partial<Operation>][] = [
  ["pm_card_visa", "succeeded 1099 EUR visa"],
  ["pm_card_visa", "succeeded 500 JPY visa", {}, of("JPY", 500)],
  ["pm_card_visa", "succeeded 500 ISK visa", {}, of("ISK", 500)],
  ["pm_card_visa", "succeeded 20000 UGX visa", {}, of("UGX", 20_000)],
  ["pm_card_visa", "succeeded 5120 KWD visa", {}, of("KWD", 5_120)],
  ["pm_card_chargeDeclined", "payment_declined 1099 EUR visa"],
  ["pm_card_chargeDeclinedInsufficientFunds", "insufficient_funds 1099 EUR visa"],
  ["pm_card_chargeDeclinedFraudulent", "aml_blocked 1099 EUR visa"],
  ["pm_card_chargeDeclinedExpiredCard", "payment_declined 1099 EUR visa"],
  ["pm_card_chargeDeclinedIncorrectCvc", "payment_declined 1099 EUR visa"],
  ["pm_card_chargeDeclinedProcessingError", "payment_declined 1099 EUR visa"],
  ["pm_card_authenticationRequired", "requires_action 1099 EUR visa"],
  // The payment shows authentication_failed, because its payer is present.
  ["pm_card_authenticationRequired", "authentication_* 1099 EUR visa", ALONE],
  ["pm_0123456789abcdef", "invalid_parameter card.token"],
];
for (const [token, expected, terms, more] of REPLIES) {
  liveCard(`${token} gives ${expected}`, async () => {
    const { reply } = await authorize(token, terms, more);
    if ("refused" in reply) return assert.equal(`${reply.refused} ${reply.param}`, expected);
    const { state, decline_code, amount_minor, currency, card, ...event } = eventOf(reply);
    const result = expected.includes("*") ? decline_code?.replace(/_.*/, "_*") : decline_code;
    assert.equal(
      `${result ?? state} ${amount_minor} ${currency} ${card?.shown?.brand}`,
      expected,
    );
    if (state === "requires_action") assert.equal(event.next_action?.type, "authenticate");
    assert.equal(event.livemode, false);
  });
}

liveCard("a part is captured once", async () => {
  const held = await authorize("pm_card_visa", { capture: "manual" });
  assert.equal(eventOf(held.reply).state, "authorized");
  const captured = eventOf((await change(held, "capture", 700)).reply);
  assert.deepEqual([captured.op, captured.state, captured.amount_minor], [
    "capture",
    "succeeded",
    700,
  ]);
  assert.equal(eventOf((await change(held, "capture", 399)).reply).reference, captured.reference);
  assert.equal(eventOf((await change(held, "cancel")).reply).reference, captured.reference);
});

liveCard("a cancel releases an authorization, and ends a challenge", async () => {
  const held = await authorize("pm_card_visa", { capture: "manual" });
  assert.equal(eventOf((await change(held, "cancel")).reply).state, "cancelled");
  const waiting = await authorize("pm_card_authenticationRequired");
  assert.equal(eventOf((await change(waiting, "cancel")).reply).state, "cancelled");
});

liveCard(
  "a challenge whose payer does nothing is expired, and an authorization is not",
  async () => {
    const waiting = await authorize("pm_card_authenticationRequired");
    const { state, failure_code } = eventOf((await change(waiting, "abandon")).reply);
    assert.deepEqual([state, failure_code], ["failed", "expired"]);
    const held = await authorize("pm_card_visa", { capture: "manual" });
    assert.equal(eventOf((await change(held, "abandon")).reply).state, "authorized");
  },
);

liveCard("a sync without Stripe's id finds the payment at once", async () => {
  const { operation, reply } = await authorize("pm_card_visa");
  assert.equal(eventOf(await sync(operation)).reference, eventOf(reply).reference);
  assert.deepEqual(await sync({ ...operation, id: `${operation.id.slice(0, -4)}none` }), {
    absent: true,
  });
});

/** The references of the card that a payment has saved. */
function keptBy({ reply }: Sent) {
  const { account, customer, token } = eventOf(reply).card!.kept!;
  return { token: token!, instrument: { account, customer } };
}

/** Saves a card for a new customer. An amount of 0 saves it alone. */
function save(token: string, amount_minor = 1099): Promise<Sent> {
  const save = { usage: "off_session", customer_id: crypto.randomUUID() } as const;
  return authorize(token, { amount_minor }, { amount_minor, request: { token, save } });
}

for (const amount_minor of [1099, 0]) {
  liveCard(
    `a card that is saved with ${amount_minor} is charged off-session, until it is detached`,
    async () => {
      const saved = await save("pm_card_visa", amount_minor);
      assert.deepEqual([eventOf(saved.reply).state, eventOf(saved.reply).card?.shown?.last4], [
        ...["succeeded", "4242"],
      ]);
      assert.equal(eventOf(await sync(saved.operation)).reference, eventOf(saved.reply).reference);
      const request = keptBy(saved);
      const charge = () => authorize("", { off_session: true, return_url: null }, { request });
      assert.equal(eventOf((await charge()).reply).state, "succeeded");
      const detaching = { ...saved.operation, op: "detach", amount_minor: 0, request } as const;
      const { reference } = eventOf((await send(detaching)).reply);
      assert.equal(reference, `${request.token}:detached`);
      assert.equal(eventOf((await send(detaching)).reply).reference, reference, "not attached");
      const { reply } = await charge();
      assert.ok("refused" in reply && reply.param === "instrument", JSON.stringify(reply));
    },
  );
}

liveCard("an issuer that wants the payer off-session is authentication_required", async () => {
  const setup = await save("pm_card_chargeCustomerFail", 0);
  const off = { off_session: true, return_url: null };
  const declined = await authorize("", off, { request: keptBy(setup) });
  assert.equal(eventOf(declined.reply).decline_code, "payment_declined");
  const waiting = await save("pm_card_authenticationRequired", 0);
  assert.equal(eventOf(waiting.reply).state, "requires_action");
  assert.equal(eventOf((await change(waiting, "cancel")).reply).state, "cancelled");
  const { reply } = await authorize("pm_card_authenticationRequired", off);
  assert.equal(eventOf(reply).decline_code, "authentication_required");
});

/** Matches a provider event of the same payment at Stripe. */
const about = ({ reply }: Sent, state: string) => {
  const { provider_reference } = eventOf(reply);
  return (event: { provider_reference: string | null; state: string; op: string }) =>
    event.provider_reference === provider_reference && event.state === state &&
    event.op === "dispute";
};

liveCard("refunds never exceed the payment, and a sync finds each by our id", async () => {
  const paid = await authorize("pm_card_visa");
  const refunded = await change(paid, "refund", 300);
  const part = eventOf(refunded.reply);
  assert.deepEqual([part.op, part.amount_minor], ["refund", 300]);
  assert.equal(eventOf(await sync(refunded.operation)).reference, part.reference);
  const { reply: too_much } = await change(paid, "refund", 800);
  assert.ok("refused" in too_much && too_much.refused === "provider_refused");
  assert.equal(eventOf((await change(paid, "refund", 799)).reply).amount_minor, 799);
  const { reply: again } = await change(paid, "refund", 1);
  assert.ok("refused" in again && again.refused === "provider_refused");
});

liveCard("a pending refund is pending at first", async () => {
  const refunded = await change(await authorize("pm_card_pendingRefund"), "refund");
  assert.equal(eventOf(refunded.reply).state, "pending");
});

liveCard("a refund that the bank refuses fails later", async () => {
  const { operation } = await change(await authorize("pm_card_refundFail"), "refund");
  // A sync shows its success too.
  await until("the refund is returned", async () => {
    const reply = await sync(operation);
    return "provider_events" in reply &&
      reply.provider_events.some(({ state }) => state === "returned");
  }, LATER_MS);
});

liveCard("a dispute takes the money, and refunds are refused then", async () => {
  const paid = await authorize("pm_card_createDispute");
  const { amount_minor } = await polled("the dispute", about(paid, "disputed"));
  assert.equal(amount_minor, 1099);
  const { reply } = await change(paid, "refund");
  assert.ok("refused" in reply && reply.refused === "provider_refused", JSON.stringify(reply));
});

liveCard("a dispute that is won gives the money back", async () => {
  const paid = await authorize("pm_card_createDispute");
  const { reference } = await polled("the dispute", about(paid, "disputed"));
  const [id] = reference.split(":");
  const won = await request("POST", `/v1/disputes/${id}`, [
    ["evidence[uncategorized_text]", "winning_evidence"],
    ["submit", "true"],
  ]);
  assert.equal(won.status, 200, JSON.stringify(won.body));
  await polled("the end of the dispute", about(paid, "dispute_won"));
}, { only_stripe: true });

liveCard("polls and totals can be read", async () => {
  const { reply } = await authorize("pm_card_visa");
  const { reference } = eventOf(reply);
  await polled("the payment", (event) => event.reference === reference);
  const to_ms = Date.now();
  const time = { from_ms: to_ms - 3_600_000, to_ms };
  for (let cursor: unknown = null;;) {
    const page = await connector.feed.totals(ACCOUNT, time, cursor, patient());
    if ("totals" in page) return assert.ok(page.totals.length > 0);
    ({ cursor } = page);
  }
});

liveCard("a webhook endpoint takes the version and the types of the connector", async () => {
  const made = await request("POST", "/v1/webhook_endpoints", [
    ["url", "https://example.com/live-card"],
    ["api_version", STRIPE_VERSION],
    ...STRIPE_EVENT_TYPES.map((type): [string, string] => ["enabled_events[]", type]),
    ["disabled", "true"],
  ]);
  try {
    assert.equal(made.status, 200, JSON.stringify(made.body));
    assert.equal(made.body.api_version, STRIPE_VERSION);
  } finally {
    await remove(String(made.body.id));
  }
}, { only_stripe: true });

async function remove(id: string): Promise<void> {
  const key = Deno.env.get("STRIPE_TEST_KEY");
  const response = await fetch(`https://api.stripe.com/v1/webhook_endpoints/${id}`, {
    method: "DELETE",
    headers: { Authorization: `Bearer ${key}`, "Stripe-Version": STRIPE_VERSION },
  });
  await response.body?.cancel();
}
