/** Totals of a day page by page, against a real HTTP server. */

import assert from "node:assert/strict";
import { stripeConnector } from "../../shared/connectors/stripe/stripe_connector.ts";
import { json, startFaultServer, type Step } from "../support/connectors/fault_server.ts";
import { patient } from "../support/connectors/sent.ts";
import { account, movement, NOW, NOW_MS, page } from "../support/connectors/stripe_case.ts";

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
  const { base_url, received } = server;
  const connector = stripeConnector(() => at_ms);
  for (let left = pages; left > 0; left--) {
    const read = await connector.feed.totals(
      account({ settings: { base_url } }),
      TIME,
      cursor,
      patient(),
    );
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

const BROKEN: [name: string, cursor: unknown, step: Step][] = [
  ["an error", null, json(500, {})],
  ["a movement that does not fit", null, json(200, page([movement({ net: "1" })]))],
  ["a list that is none", null, json(200, movement())],
  ["a cursor of a poll", { list: "events", from: 1, to: null, after: null }, LAST],
];
for (const [name, cursor, step] of BROKEN) {
  Deno.test(`totals() throws for ${name}`, async () => {
    await assert.rejects(totalled({ cursor }, step));
  });
}
