/** Polls, totals of a day and the test call, against a real HTTP server. */

import assert from "node:assert/strict";
import { stripeConnector } from "../../shared/connectors/stripe/stripe_connector.ts";
import { STRIPE_EVENT_TYPES } from "../../shared/connectors/stripe/stripe_events.ts";
import type { ProviderAccount, ProviderEvent } from "../../shared/domain/providers/connector.ts";
import {
  cut,
  type FaultServer,
  json,
  startFaultServer,
  type Step,
  text,
} from "../support/connectors/fault_server.ts";
import {
  account,
  charge,
  declinedIntent,
  event,
  intent,
  type Members,
  movement,
  NOW,
  NOW_MS,
  page,
  patient,
  PAYMENT_ID,
  refund,
  SECRET,
} from "../support/connectors/stripe_case.ts";

const connector = stripeConnector(() => NOW_MS);
const EMPTY = json(200, page([]));

function accountOf(server: FaultServer, more: Partial<ProviderAccount> = {}): ProviderAccount {
  return account({ ...more, settings: { base_url: server.base_url } });
}

/** Polls until there is no more. */
async function polled(cursor: unknown, ...steps: Step[]) {
  await using server = await startFaultServer(...steps);
  const provider_events: ProviderEvent[] = [];
  for (let more = true; more;) {
    const read = await connector.feed.poll(accountOf(server), cursor, patient());
    provider_events.push(...read.provider_events);
    ({ cursor, more } = read);
    // A cursor is stored as JSON between polls.
    cursor = JSON.parse(JSON.stringify(cursor));
  }
  return {
    references: provider_events.map(({ reference }) => reference),
    provider_events,
    cursor,
    ...server,
  };
}

const window = (query: URLSearchParams) =>
  ["created[gte]", "created[lt]", "starting_after"].map((name) => query.get(name));

Deno.test("poll() first reads the last hour: events in two lists, then all movements", async () => {
  const movements = page([movement({ source: charge({ balance_transaction: "txn_1" }) })]);
  const first = await polled(null, EMPTY, EMPTY, json(200, movements));
  const [events, cards, fees] = first.received;
  assert.equal(events!.path, "/v1/events");
  assert.equal(events!.query.getAll("types[]").length, 18);
  assert.equal(cards!.path, "/v1/events");
  assert.equal(cards!.query.getAll("types[]").length, 6);
  for (const { query } of [events!, cards!]) {
    assert.deepEqual(window(query), [String(NOW - 3600), String(NOW + 1), null]);
  }
  assert.equal(fees!.path, "/v1/balance_transactions");
  assert.equal(fees!.query.get("type"), null);
  assert.equal(fees!.query.get("expand[]"), "data.source");
  assert.deepEqual(window(fees!.query), [String(NOW - 3600), String(NOW + 1), null]);
  assert.deepEqual(first.references, ["ch_1:fee"]);
  assert.equal(first.provider_events[0]!.subject_id, PAYMENT_ID);
});

Deno.test("poll() continues five minutes before the end of the last window", async () => {
  const first = await polled(null, EMPTY);
  const { received } = await polled(first.cursor, EMPTY);
  assert.deepEqual(window(received[0]!.query), [String(NOW + 1 - 300), String(NOW + 1), null]);
});

Deno.test("poll() reads all pages, each from the oldest to the newest", async () => {
  const succeeded = event("payment_intent.succeeded", intent({ latest_charge: "ch_1" }));
  const failed = event("payment_intent.payment_failed", declinedIntent("lost_card"));
  const older = event("refund.created", refund());
  const { references, received } = await polled(
    null,
    json(200, page([{ ...succeeded, id: "evt_3" }, { ...failed, id: "evt_2" }], true)),
    json(200, page([older])),
    EMPTY,
  );
  assert.deepEqual(references, ["pi_1:declined", "pi_1:succeeded", "re_1:succeeded"]);
  assert.deepEqual(received.map(({ query }) => window(query)[2]), [null, "evt_2", null, null]);
});

Deno.test("poll() leaves out events that do not fit, and reads the others", async () => {
  const broken = event("payment_intent.succeeded", { id: "pi_2" });
  const sound = event("refund.created", refund());
  const { references } = await polled(null, json(200, page([broken, { id: 7 }, sound])), EMPTY);
  assert.deepEqual(references, ["re_1:succeeded"]);
});

Deno.test("poll() begins a window of the day before again", async () => {
  const cursor = { list: "movements", from: NOW - 200_000, to: NOW - 100_000, after: "txn_1" };
  const { received } = await polled(cursor, EMPTY);
  assert.equal(received[0]!.path, "/v1/events");
  assert.deepEqual(window(received[0]!.query), [String(NOW - 200_000), String(NOW + 1), null]);
});

/** An event in the version of an account of 2020, whose payments have no `latest_charge`. */
function oldEvent(id: string, type: string, object: Members): Members {
  const { latest_charge: _, ...old } = object;
  return { ...event(type, old), id, api_version: "2020-08-27" };
}

Deno.test("poll() reads the object of an event in another version itself, once", async () => {
  const ended = intent({ status: "canceled", cancellation_reason: "abandoned" });
  const { references, received } = await polled(
    null,
    json(
      200,
      page([
        oldEvent("evt_3", "payment_intent.canceled", ended),
        event("refund.created", refund()),
        oldEvent("evt_1", "payment_intent.amount_capturable_updated", intent()),
      ]),
    ),
    json(200, ended),
    EMPTY,
  );
  // The event alone would say that nobody has authenticated: it shows no charge.
  assert.deepEqual(references, ["re_1:succeeded", "pi_1:cancelled"]);
  assert.deepEqual(received.map(({ path }) => path), [
    "/v1/events",
    "/v1/payment_intents/pi_1",
    "/v1/events",
    "/v1/balance_transactions",
  ]);
  assert.equal(received[1]!.query.get("expand[]"), "latest_charge.balance_transaction");
});

Deno.test("poll() leaves out the object of an old event that Stripe does not have", async () => {
  const events = page([oldEvent("evt_1", "payment_intent.succeeded", intent())]);
  const gone = json(404, { error: { type: "invalid_request_error" } });
  assert.deepEqual((await polled(null, json(200, events), gone, EMPTY)).references, []);
});

Deno.test("poll() throws if Stripe does not return the object of an old event", async () => {
  const events = page([oldEvent("evt_1", "payment_intent.succeeded", intent())]);
  await assert.rejects(polled(null, json(200, events), json(500, {})), /does not show pi_1/);
});

const BROKEN_POLLS: [name: string, cursor: unknown, step: Step][] = [
  ["an error", null, json(500, {})],
  ["an expired object to continue from", null, json(400, { error: { type: "x" } })],
  ["a cursor of another connector", { block: 7 }, EMPTY],
];
for (const [name, cursor, step] of BROKEN_POLLS) {
  Deno.test(`poll() throws for ${name}`, async () => {
    await assert.rejects(polled(cursor, step), (error: Error) => !error.message.includes(SECRET));
  });
}

const DAY_S = 86_400;
const TIME = { from_ms: NOW_MS, to_ms: NOW_MS + DAY_S * 1000 };
const LAST = json(200, page([movement({ id: "txn_9", net: 1 })]));

/** Reads a day from a cursor on, `pages` times or to its end. */
async function totalled(
  { cursor = null, pages = Infinity, at_ms = NOW_MS }: {
    cursor?: unknown;
    pages?: number;
    at_ms?: number;
  },
  ...steps: Step[]
) {
  await using server = await startFaultServer(...steps);
  const { received } = server;
  const { feed } = stripeConnector(() => at_ms);
  for (let left = pages; left > 0; left--) {
    const read = await feed.totals(accountOf(server), TIME, cursor, patient());
    if ("totals" in read) return { totals: read.totals, cursor: null, received };
    // A cursor is stored as JSON between pages.
    cursor = JSON.parse(JSON.stringify(read.cursor));
  }
  return { totals: null, cursor, received };
}

Deno.test("totals() sums all pages by currency, and rounds only the whole sum", async () => {
  const { totals, received } = await totalled(
    {},
    json(200, page([movement(), movement({ currency: "isk", net: 51 })], true)),
    json(200, page([movement({ id: "txn_2", net: -300 })], true)),
    json(
      200,
      page([movement({ currency: "usd", net: 5 }), movement({ currency: "isk", net: 86 })]),
    ),
  );
  assert.deepEqual(totals, [
    { currency: "EUR", net_minor: 758 },
    { currency: "ISK", net_minor: 1 },
    { currency: "USD", net_minor: 5 },
  ]);
  const requested = ["created[gte]", "created[lt]", "starting_after"];
  assert.deepEqual(received.map(({ query }) => requested.map((name) => query.get(name))), [
    [String(NOW), String(NOW + DAY_S), null],
    [String(NOW), String(NOW + DAY_S), "txn_1"],
    [String(NOW), String(NOW + DAY_S), "txn_2"],
  ]);
});

Deno.test("totals() goes on at its cursor in another process", async () => {
  const first = await totalled({ pages: 1 }, json(200, page([movement()], true)));
  const { totals, received } = await totalled({ cursor: first.cursor }, LAST);
  assert.deepEqual(totals, [{ currency: "EUR", net_minor: 1059 }]);
  assert.deepEqual(received.map(({ query }) => query.get("starting_after")), ["txn_1"]);
});

Deno.test("totals() begins again with a cursor that is older than a day", async () => {
  const { cursor } = await totalled({ pages: 1 }, json(200, page([movement()], true)));
  const at_ms = NOW_MS + (DAY_S + 1) * 1000;
  const { totals } = await totalled({ cursor, at_ms }, LAST);
  assert.deepEqual(totals, [{ currency: "EUR", net_minor: 1 }]);
});

const BROKEN_TOTALS: [name: string, cursor: unknown, step: Step][] = [
  ["an error", null, json(500, {})],
  ["a movement that does not fit", null, json(200, page([movement({ net: "1" })]))],
  ["a cursor of a poll", { list: "events", from: 1, to: null, after: null }, LAST],
];
for (const [name, cursor, step] of BROKEN_TOTALS) {
  Deno.test(`totals() throws for ${name}`, async () => {
    await assert.rejects(totalled({ cursor }, step));
  });
}

const ACCOUNT = { object: "account", id: "acct_1" };
const endpoints = (api_version: string | null, enabled_events: readonly string[]) => {
  const url = "https://a.example/api-v1-payments/providers/pac_1/notifications";
  return page([{ url, api_version, enabled_events }]);
};
const unauthorized = json(401, {});

/** Runs the test call at a server with a response for each path. */
async function tested(paths: Record<string, Step>, secret: string | null = SECRET) {
  const response: Step = (response, received) =>
    (paths[received.path] ?? json(404, {}))(response, received);
  await using server = await startFaultServer(response);
  return await connector.test(accountOf(server, { secret }), patient());
}

const accepted = (version?: string, events: readonly string[] = ["*"]): Record<string, Step> => ({
  "/v1/account": json(200, ACCOUNT),
  ...(version && { "/v1/webhook_endpoints": json(200, endpoints(version, events)) }),
});
const IN_TEST_MODE = "Stripe accepts the key of acct_1 in test mode";
const TESTS: [paths: Record<string, Step>, secret: string, line: string][] = [
  [accepted(), SECRET, IN_TEST_MODE],
  [
    { "/v1/account": json(403, {}), "/v1/balance": json(200, { object: "balance" }) },
    "rk_live_1",
    "Stripe accepts the key of this account in live mode",
  ],
  [accepted("2026-10-28.endive"), SECRET, IN_TEST_MODE],
  [
    accepted("2024-06-20"),
    SECRET,
    `${IN_TEST_MODE}. Its webhook endpoint has version 2024-06-20: create it with version 2026-10-28.endive`,
  ],
  [
    accepted("2026-10-28.endive", STRIPE_EVENT_TYPES.slice(0, -2)),
    SECRET,
    `${IN_TEST_MODE}. Its webhook endpoint lacks events: add payment_method.automatically_updated, payment_method.detached`,
  ],
];
for (const [paths, secret, line] of TESTS) {
  Deno.test(`test() says "${line}"`, async () => {
    assert.equal(await tested(paths, secret), line);
  });
}

const FAILED: [paths: Record<string, Step>, secret: string | null, message: RegExp][] = [
  [{}, null, /variable that holds the secret is not set/],
  [{}, SECRET, /does not respond like Stripe/],
  [{ "/v1/account": text(200, "<html>") }, SECRET, /does not respond like Stripe/],
  [{ "/v1/account": json(200, { object: "list" } as Members) }, SECRET, /does not respond like/],
  [{ "/v1/account": unauthorized, "/v1/balance": unauthorized }, SECRET, /refuses the secret/],
  [{ "/v1/account": json(500, {}) }, SECRET, /error of its own/],
  [{ "/v1/account": cut() }, SECRET, /no connection/],
];
for (const [paths, secret, message] of FAILED) {
  Deno.test(`test() throws ${message}`, async () => {
    await assert.rejects(tested(paths, secret), (error: Error) => {
      assert.match(error.message, message);
      assert.ok(!error.message.includes(SECRET));
      return true;
    });
  });
}
