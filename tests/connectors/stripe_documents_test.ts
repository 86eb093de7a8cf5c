/**
 * Second readers of the connector: stripe-mock checks each request against Stripe's OpenAPI
 * document, and Stripe's own package has the types of the objects and events that the connector
 * reads. The type check of this file is one of the tests. stripe-mock keeps no state and returns no
 * errors of its own, so it tells nothing about the behaviour of Stripe.
 */

import assert from "node:assert/strict";
import Stripe from "stripe";
import type * as z from "zod";
import { stripeConnector } from "../../shared/connectors/stripe/stripe_connector.ts";
import { STRIPE_EVENT_TYPES } from "../../shared/connectors/stripe/stripe_events.ts";
import {
  BalanceTransaction,
  Charge,
  Customer,
  Dispute,
  KeptCard,
  PaymentIntent,
  Payout,
  SetupIntent,
  type StripeError,
  StripeEvent,
  StripePage,
  StripeRefund,
} from "../../shared/connectors/stripe/stripe_objects.ts";
import { STRIPE_VERSION } from "../../shared/connectors/stripe/stripe_settings.ts";
import type { Operation } from "../../shared/domain/providers/connector.ts";
import { json, type Received, startFaultServer } from "../support/connectors/fault_server.ts";
import {
  account,
  charging,
  detaching,
  disputeOperation,
  intent,
  laterOperation,
  type Members,
  NOW_MS,
  operation,
  page,
  patient,
  saving,
  setup,
} from "../support/connectors/stripe_case.ts";
import { no_stripe_mock, startStripeMock } from "../support/stripe/stripe_mock.ts";

const connector = stripeConnector(() => NOW_MS);
const TIME = { from_ms: NOW_MS, to_ms: NOW_MS + 1000 };
/** The objects that are not an empty list. A payment waits for its payer. */
const SHOWN: Record<string, Members> = {
  pi_1: intent({ status: "requires_action", latest_charge: null }),
  seti_1: setup({ status: "requires_action" }),
  customers: { id: "cus_1", object: "customer" },
};
const manual = operation({}, { capture: "manual", return_url: null });

type Ask = (to: ReturnType<typeof account>, signal: AbortSignal) => Promise<unknown>;
const send = (requested: Operation): Ask => (to, signal) =>
  connector.charges.send(to, requested, signal);
const sync = (requested: Operation): Ask => (to, signal) =>
  connector.charges.sync(to, requested, signal);
const poll: Ask = (to, signal) => connector.feed.poll(to, null, signal);
const pollForFees: Ask = async (to, signal) => {
  let cursor: unknown = null;
  for (let pages = 0; pages < 3; pages++) {
    ({ cursor } = await connector.feed.poll(to, cursor, signal));
  }
};
const totals: Ask = (to, signal) => connector.feed.totals(to, TIME, null, signal);
const test: Ask = (to, signal) => connector.test(to, signal).catch(() => {});

/** Each method of the connector, with the paths that it asks for. */
const METHODS: [name: string, ask: Ask, ...paths: string[]][] = [
  ["authorize", send(operation()), "POST payment_intents"],
  ["authorize without return_url", send(manual), "POST payment_intents"],
  ["capture", send(laterOperation("capture")), "POST payment_intents/pi_1/capture"],
  ["cancel", send(laterOperation("cancel")), "POST payment_intents/pi_1/cancel"],
  [
    "abandon",
    send(laterOperation("abandon")),
    "GET payment_intents/pi_1",
    "POST payment_intents/pi_1/cancel",
  ],
  ["refund", send(laterOperation("refund")), "POST refunds"],
  ["evidence", send(disputeOperation("A receipt")), "POST disputes/du_1"],
  ["accept a dispute", send(disputeOperation(null)), "POST disputes/du_1/close"],
  ["sync a dispute", sync(disputeOperation(null)), "GET disputes/du_1"],
  ["sync by reference", sync(laterOperation("cancel")), "GET payment_intents/pi_1"],
  ["sync without a reference", sync(operation()), "GET payment_intents", "GET payment_intents"],
  ["sync a refund", sync(laterOperation("refund")), "GET refunds"],
  ["poll for events", poll, "GET events"],
  ["poll for fees", pollForFees, "GET events", "GET events", "GET balance_transactions"],
  ["save for a new customer", send(saving(1099, null)), "POST customers", "POST payment_intents"],
  ["save a card alone", send(saving(0)), "POST setup_intents"],
  ["sync a card that is saved alone", sync(saving(0)), "GET setup_intents", "GET setup_intents"],
  [
    "abandon a card that is saved alone",
    send({ ...laterOperation("abandon"), provider_reference: "seti_1" }),
    "GET setup_intents/seti_1",
    "POST setup_intents/seti_1/cancel",
  ],
  [
    "charge a saved card",
    send(charging({ return_url: null, off_session: true })),
    "POST payment_intents",
  ],
  ["detach a card", send(detaching), "POST payment_methods/pm_1/detach"],
  ["sync the removal of a card", sync(detaching), "GET payment_methods/pm_1"],
  ["totals", totals, "GET balance_transactions"],
  ["test", test, "GET account"],
];

let mock: Awaited<ReturnType<typeof startStripeMock>> = null;
Deno.test.beforeAll(async () => void (mock = await startStripeMock()));
Deno.test.afterAll(async () => await mock?.close());

/** Registers a test. Without stripe-mock it is skipped, and fails in CI. */
function mockTest(name: string, test: (base_url: string) => Promise<void>): void {
  const fn = async () => {
    assert.ok(mock, "stripe-mock is not installed");
    await test(mock.base_url);
  };
  Deno.test({ name, ignore: no_stripe_mock, fn });
}

for (const [name, ask, ...paths] of METHODS) {
  mockTest(`${name} has the shape of Stripe's document`, async (base_url) => {
    await using server = await startFaultServer((response, received) =>
      json(200, SHOWN[received.path.split("/").at(-1)!] ?? page([]))(response, received)
    );
    await ask(account({ settings: { base_url: server.base_url } }), patient());
    const requested = server.received.map(({ method, path }) => `${method} ${path.slice(4)}`);
    assert.deepEqual(requested, paths);
    for (const received of server.received) {
      const response = await repeat(base_url, received);
      const body = await response.text();
      assert.equal(response.status, 200, body);
    }
  });
}

mockTest("stripe-mock refuses a parameter that Stripe does not know", async (base_url) => {
  const headers = { authorization: "Bearer sk_test_123" };
  const body = new URLSearchParams({ payment_intent: "pi_1", no_such: "1" });
  const response = await fetch(`${base_url}/v1/refunds`, { method: "POST", headers, body });
  assert.match(await response.text(), /additional properties/);
  assert.equal(response.status, 400);
});

/** Sends a recorded request to stripe-mock. */
function repeat(base_url: string, { method, path, query, headers, form }: Received) {
  const names = ["authorization", "content-type", "stripe-version", "idempotency-key"];
  const kept = names.flatMap((name) => headers[name] ? [[name, String(headers[name])]] : []);
  const search = query.size > 0 ? `?${query}` : "";
  const body = method === "POST" ? form.toString() : null;
  const init = { method, headers: kept as [string, string][], body };
  return fetch(`${base_url}${path}${search}`, init);
}

/** An error of the type check unless every object of the package fits the shape. */
type Fits<Shape extends z.ZodType, Theirs extends z.input<Shape>> = Theirs;

/** The objects of the package that the shapes read. */
type Compared = [
  Fits<typeof PaymentIntent, Stripe.PaymentIntent>,
  Fits<typeof StripeError, Stripe.PaymentIntent.LastPaymentError>,
  Fits<typeof Charge, Stripe.Charge>,
  Fits<typeof BalanceTransaction, Stripe.BalanceTransaction>,
  Fits<typeof StripeRefund, Stripe.Refund>,
  Fits<typeof Dispute, Stripe.Dispute>,
  Fits<typeof Payout, Stripe.Payout>,
  Fits<typeof Customer, Stripe.Customer>,
  Fits<typeof KeptCard, Stripe.PaymentMethod>,
  Fits<typeof SetupIntent, Stripe.SetupIntent>,
  Fits<typeof StripePage, Stripe.ApiList<Stripe.PaymentIntent & Record<string, unknown>>>,
  Fits<
    typeof StripeEvent,
    Stripe.PaymentIntentSucceededEvent & { data: { object: Record<string, unknown> } }
  >,
];

Deno.test("STRIPE_VERSION is the version of the package", () => {
  assert.equal(STRIPE_VERSION, Stripe.API_VERSION);
});

/** An error of the type check if the package does not have an event. */
STRIPE_EVENT_TYPES satisfies readonly Stripe.Event["type"][];
