/**
 * The shape of each request, as stripe-mock checks it against Stripe's OpenAPI document, and the
 * shapes of objects, read from its fixtures. stripe-mock keeps no state and returns no errors of
 * its own, so these tests say nothing about the behaviour of Stripe.
 */

import assert from "node:assert/strict";
import type * as z from "zod";
import { stripeConnector } from "../../shared/connectors/stripe/stripe_connector.ts";
import {
  BalanceTransaction,
  Charge,
  Dispute,
  PaymentIntent,
  Payout,
  StripeEvent,
  StripePage,
  StripeRefund,
} from "../../shared/connectors/stripe/stripe_objects.ts";
import { json, type Received, startFaultServer } from "../support/connectors/fault_server.ts";
import { patient } from "../support/connectors/sent.ts";
import {
  account,
  disputeOperation,
  intent,
  laterOperation,
  NOW_MS,
  operation,
  page,
} from "../support/connectors/stripe_case.ts";
import { no_stripe_mock, startStripeMock } from "../support/stripe/stripe_mock.ts";

const connector = stripeConnector(() => NOW_MS);
const TIME = { from_ms: NOW_MS, to_ms: NOW_MS + 1000 };
const waiting = intent({ status: "requires_action", latest_charge: null });
const manual = operation({}, { capture: "manual", return_url: null });

type Ask = (
  account: Parameters<typeof connector.charges.send>[0],
  signal: AbortSignal,
) => Promise<unknown>;

/** Each method of the connector, with the paths that it asks for. */
const METHODS: [name: string, ask: Ask, paths: string[]][] = [
  ["authorize", (to, signal) => connector.charges.send(to, operation(), signal), [
    "POST payment_intents",
  ]],
  ["authorize without return_url", (to, signal) => connector.charges.send(to, manual, signal), [
    "POST payment_intents",
  ]],
  ["capture", (to, signal) => connector.charges.send(to, laterOperation("capture"), signal), [
    "POST payment_intents/pi_1/capture",
  ]],
  ["cancel", (to, signal) => connector.charges.send(to, laterOperation("cancel"), signal), [
    "POST payment_intents/pi_1/cancel",
  ]],
  ["abandon", (to, signal) => connector.charges.send(to, laterOperation("abandon"), signal), [
    "GET payment_intents/pi_1",
    "POST payment_intents/pi_1/cancel",
  ]],
  ["refund", (to, signal) => connector.charges.send(to, laterOperation("refund"), signal), [
    "POST refunds",
  ]],
  ["evidence", (to, signal) => connector.charges.send(to, disputeOperation("A receipt"), signal), [
    "POST disputes/du_1",
  ]],
  ["accept a dispute", (to, signal) => connector.charges.send(to, disputeOperation(null), signal), [
    "POST disputes/du_1/close",
  ]],
  [
    "sync a dispute",
    (to, signal) => connector.charges.sync(to, disputeOperation(null), signal),
    [
      "GET disputes/du_1",
    ],
  ],
  [
    "sync by reference",
    (to, signal) => connector.charges.sync(to, laterOperation("cancel"), signal),
    [
      "GET payment_intents/pi_1",
    ],
  ],
  ["sync without a reference", (to, signal) => connector.charges.sync(to, operation(), signal), [
    "GET payment_intents",
    "GET payment_intents",
  ]],
  [
    "sync a refund",
    (to, signal) => connector.charges.sync(to, laterOperation("refund"), signal),
    [
      "GET refunds",
    ],
  ],
  ["poll for events", (to, signal) => connector.feed.poll(to, null, signal), [
    "GET events",
  ]],
  [
    "poll for fees",
    async (to, signal) => {
      const { cursor } = await connector.feed.poll(to, null, signal);
      await connector.feed.poll(to, cursor, signal);
    },
    ["GET events", "GET balance_transactions"],
  ],
  ["totals", (to, signal) => connector.feed.totals(to, TIME, null, signal), [
    "GET balance_transactions",
  ]],
  ["test", (to, signal) => connector.test(to, signal).catch(() => {}), ["GET account"]],
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

for (const [name, ask, paths] of METHODS) {
  mockTest(`${name} has the shape of Stripe's document`, async (base_url) => {
    // The payment waits for its payer. Every other response is an empty list.
    await using server = await startFaultServer((response, received) =>
      json(200, received.path.endsWith("/pi_1") ? waiting : page([]))(response, received)
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

const OBJECTS: [path: string, shape: z.ZodType][] = [
  ["payment_intents/pi_1", PaymentIntent],
  ["charges/ch_1", Charge],
  ["balance_transactions/txn_1", BalanceTransaction],
  ["refunds/re_1", StripeRefund],
  ["disputes/dp_1", Dispute],
  ["payouts/po_1", Payout],
  ["events/evt_1", StripeEvent],
  ["refunds", StripePage],
];
for (const [path, shape] of OBJECTS) {
  mockTest(`the shape of ${path} reads the fixture of Stripe's document`, async (base_url) => {
    const headers = { authorization: "Bearer sk_test_123" };
    const response = await fetch(`${base_url}/v1/${path}`, { headers });
    const read = shape.safeParse(await response.json());
    assert.ok(read.success, String(read.error));
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
