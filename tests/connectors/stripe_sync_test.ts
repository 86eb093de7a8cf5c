/**
 * Syncs: the result of an operation by its reference at Stripe, or by our own ids in the metadata.
 */

import assert from "node:assert/strict";
import type { Operation } from "../../shared/domain/providers/connector.ts";
import { cut, json, type Step, text } from "../support/connectors/fault_server.ts";
import {
  declinedIntent,
  intent,
  laterOperation,
  NOW,
  operation,
  page,
  refund,
  synced,
} from "../support/connectors/stripe_case.ts";

const ABSENT = { absent: true };
const unknown = (reason: string, may_repeat = true) => ({ unknown: reason, may_repeat });
const known = operation({ provider_reference: "pi_1" });
const HELD = intent({ capture_method: "manual", status: "requires_capture", amount_capturable: 9 });

const BY_REFERENCE: [name: string, requested: Operation, step: Step, reply: unknown][] = [
  ["a payment", known, json(200, intent()), ["pi_1:succeeded", "ch_1:fee"]],
  ["a declined payment", known, json(200, declinedIntent("lost_card")), ["pi_1:declined"]],
  ["an authorized payment", known, json(200, HELD), ["pi_1:authorized"]],
  ["a capture", laterOperation("capture"), json(200, intent()), ["pi_1:succeeded", "ch_1:fee"]],
  ["a capture that nobody did", laterOperation("capture"), json(200, HELD), ABSENT],
  ["a cancel", laterOperation("cancel"), json(200, intent({ status: "canceled" })), [
    "pi_1:cancelled",
  ]],
  ["a cancel that nobody did", laterOperation("cancel"), json(200, HELD), ABSENT],
  ["another payment", known, json(200, intent({ id: "pi_2" })), unknown("garbage")],
  ["a payment of another call", known, json(200, intent({ metadata: {} })), unknown("garbage")],
  ["a payment that is gone", known, json(404, { error: { type: "x" } }), unknown("garbage")],
  ["an error", known, text(503, "<html>"), unknown("server_error")],
  ["a wrong secret", known, json(401, {}), unknown("unauthorized")],
];
for (const [name, requested, step, expected] of BY_REFERENCE) {
  Deno.test(`sync() by reference at ${name} is ${JSON.stringify(expected)}`, async () => {
    const { shown, received: [got, ...others] } = await synced(requested, step);
    assert.deepEqual(shown, expected);
    assert.deepEqual(others, []);
    assert.equal(`${got!.method} ${got!.path}`, "GET /v1/payment_intents/pi_1");
    assert.equal(got!.query.get("expand[]"), "latest_charge.balance_transaction");
    assert.equal(got!.headers["idempotency-key"], undefined);
  });
}

const foreign = (id: string) => intent({ id, metadata: { call: "pc_2" } });

Deno.test("sync() without a reference reads lists around the reservation until the operation is found", async () => {
  const first = json(200, page([foreign("pi_9"), foreign("pi_8")], true));
  const { shown, received } = await synced(operation(), first, json(200, page([intent()], true)));
  assert.deepEqual(shown, ["pi_1:succeeded", "ch_1:fee"]);
  assert.deepEqual(received.map(({ path, query }) => [path, ...query]), [
    ["/v1/payment_intents", ...around(-300, 900), ["limit", "100"]],
    ["/v1/payment_intents", ...around(-300, 900), ["limit", "100"], ["starting_after", "pi_8"]],
  ]);
});

function around(from: number, to: number): [string, string][] {
  return [
    ["created[gte]", String(NOW + from)],
    ["created[lt]", String(NOW + to)],
    ["expand[]", "data.latest_charge.balance_transaction"],
  ];
}

Deno.test("sync() reads lists with too many bytes in smaller pages, and keeps their length", async () => {
  const other = (id: string) => ({ ...foreign(id), metadata: { note: "x".repeat(30_000) } });
  const all = [...Array.from({ length: 70 }, (_, i) => other(`pi_${900 - i}`)), intent()];
  const pages: Step = (response, received) => {
    const { query } = received;
    const begin = all.findIndex(({ id }) => id === query.get("starting_after")) + 1;
    const end = begin + Number(query.get("limit"));
    return json(200, page(all.slice(begin, end), end < all.length))(response, received);
  };
  const { shown, received } = await synced(operation(), pages);
  assert.deepEqual(shown, ["pi_1:succeeded", "ch_1:fee"]);
  assert.deepEqual(
    received.map(({ query }) => query.get("limit")),
    ["100", "50", "25", "25", "25"],
  );
});

Deno.test("sync() without a reference is absent after a whole day of lists", async () => {
  const { reply, received } = await synced(operation(), json(200, page([foreign("pi_9")])));
  assert.deepEqual(reply, ABSENT);
  assert.deepEqual(received.map(({ query }) => query.get("created[lt]")), [
    String(NOW + 900),
    String(NOW + 86_400),
  ]);
});

Deno.test("sync() finds a payment that a later attempt has made", async () => {
  const { shown } = await synced(operation(), json(200, page([])), json(200, page([intent()])));
  assert.deepEqual(shown, ["pi_1:succeeded", "ch_1:fee"]);
});

const BROKEN: [name: string, steps: Step[], reply: unknown][] = [
  ["an error", [json(500, {})], unknown("server_error")],
  ["an error on page 2", [json(200, page([foreign("pi_9")], true)), cut()], unknown("connection")],
  ["an error in the second window", [json(200, page([])), json(429, {})], unknown("rate_limited")],
  ["a list that is none", [json(200, intent())], unknown("garbage")],
  ["a page without an end", [json(200, page([foreign("pi_9")], true))], unknown("garbage")],
  ["an empty page with more", [json(200, page([], true))], unknown("garbage")],
];
for (const [name, steps, expected] of BROKEN) {
  Deno.test(`sync() in lists with ${name} is never absent`, async () => {
    assert.deepEqual((await synced(operation(), ...steps)).reply, expected);
  });
}

Deno.test("sync() for a refund reads the refunds of the payment", async () => {
  const other = refund({ id: "re_9", metadata: null });
  const list = json(200, page([other, refund({ status: "pending" })]));
  const { shown, received: [got] } = await synced(laterOperation("refund"), list);
  assert.deepEqual(shown, ["re_1:pending"]);
  assert.equal(got!.path, "/v1/refunds");
  assert.equal(got!.query.get("payment_intent"), "pi_1");
});

Deno.test("sync() for a refund that Stripe does not have is absent", async () => {
  const { reply } = await synced(laterOperation("refund"), json(200, page([])));
  assert.deepEqual(reply, ABSENT);
});

for (const op of ["capture", "cancel", "refund"] as const) {
  Deno.test(`sync() for a ${op} without a payment at Stripe is absent`, async () => {
    const requested = { ...laterOperation(op), provider_reference: null };
    const { reply, received } = await synced(requested, json(200, page([])));
    assert.deepEqual(reply, ABSENT);
    assert.deepEqual(received, []);
  });
}
