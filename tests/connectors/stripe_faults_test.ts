/**
 * Faults of the transport and responses that are not Stripe's: each is unknown, never a failure.
 */

import assert from "node:assert/strict";
import { stripeConnector } from "../../shared/connectors/stripe/stripe_connector.ts";
import type { Operation } from "../../shared/domain/providers/connector.ts";
import {
  cut,
  json,
  startFaultServer,
  type Step,
  text,
} from "../support/connectors/fault_server.ts";
import { patient, sent } from "../support/connectors/sent.ts";
import {
  account,
  declinedIntent,
  declinedResponse,
  intent,
  laterOperation,
  operation,
  refund,
} from "../support/connectors/stripe_case.ts";

const connector = stripeConnector();
const unknown = (reason: string, may_repeat = true) => ({ unknown: reason, may_repeat });
const REFUSED_KEY = { ...unknown("unauthorized"), did_nothing: true };
const REPLAYED = { "idempotent-replayed": "true" };
const STRIPE_500 = { error: { type: "api_error", message: "Try again." } };
const big = JSON.stringify({ ...intent(), description: "x".repeat(10_000_000) });
const FAULTS: [name: string, step: Step, reply: unknown][] = [
  ["500", json(500, STRIPE_500), unknown("server_error")],
  [
    "500 from the memory of the key",
    json(500, STRIPE_500, REPLAYED),
    unknown("server_error", false),
  ],
  [
    "500 in HTML from the memory of the key",
    text(500, "<html>", REPLAYED),
    unknown("server_error", false),
  ],
  ["502 in HTML", text(502, "<html>"), unknown("server_error")],
  ["424", json(424, STRIPE_500), unknown("server_error")],
  ["429", json(429, { error: { type: "invalid_request_error" } }), unknown("rate_limited")],
  ["409", json(409, { error: { type: "invalid_request_error" } }), unknown("in_progress")],
  ["401", json(401, { error: { type: "invalid_request_error" } }), REFUSED_KEY],
  ["403", json(403, { error: { type: "invalid_request_error" } }), REFUSED_KEY],
  ["401 in HTML", text(401, "<html>"), unknown("unauthorized")],
  ["401 of another program", json(401, { message: "no" }), unknown("unauthorized")],
  [
    "400 for another request under the key",
    json(400, { error: { type: "idempotency_error" } }),
    unknown("idempotency_conflict", false),
  ],
  ["400 in HTML", text(400, "<html>Bad request</html>"), unknown("garbage")],
  ["400 without an error", json(400, {}), unknown("garbage")],
  [
    "402 without the payment",
    json(402, { error: { type: "card_error", code: "card_declined" } }),
    unknown("garbage", false),
  ],
  ["200 in HTML", text(200, "<html>"), unknown("garbage")],
  ["200 with half of a JSON", text(200, JSON.stringify(intent()).slice(0, -9)), unknown("garbage")],
  ["200 with a list", json(200, [intent()]), unknown("garbage")],
  ["200 with null", json(200, null), unknown("garbage")],
  ["200 with deep JSON", text(200, "[".repeat(200_000)), unknown("garbage")],
  ["200 with 10 MB", text(200, big), { ...unknown("garbage"), too_long: true }],
  [
    "200 that is not UTF-8",
    (response) => void response.end(new Uint8Array([0x7b, 0xff, 0x7d])),
    unknown("garbage"),
  ],
  [
    "200 that ends within a character",
    (response) => void response.end(new Uint8Array([0x7b, 0xc3])),
    unknown("garbage"),
  ],
  ["200 with a refund", json(200, refund()), unknown("garbage")],
  ["200 with another id", json(200, intent({ id: "ch_1" })), unknown("garbage")],
  [
    "200 with the payment of another operation",
    json(200, intent({ metadata: { call: "pc_2" } })),
    unknown("garbage"),
  ],
  ["200 without our metadata", json(200, intent({ metadata: {} })), unknown("garbage")],
  [
    "200 with a text as the amount",
    json(200, intent({ amount_received: "1099" })),
    unknown("garbage"),
  ],
  ["200 with an unknown status", json(200, intent({ status: "paused" })), unknown("garbage")],
  ["201", json(201, intent()), unknown("garbage")],
  [
    "a redirect",
    text(302, "", { location: "/v1/payment_intents/elsewhere" }),
    unknown("connection"),
  ],
  ["a cut connection", cut(), unknown("connection")],
  ["a cut response", cut(JSON.stringify(intent()).slice(0, 50)), unknown("connection")],
];
for (const [name, step, expected] of FAULTS) {
  Deno.test(`send() ${name} is ${JSON.stringify(expected)}`, async () => {
    const { reply, received } = await sent(operation(), step);
    assert.deepEqual(reply, expected);
    assert.ok(received.every(({ path }) => path === "/v1/payment_intents"));
  });
}

Deno.test("send() a payment of another operation in a decline is garbage", async () => {
  const response = declinedResponse("do_not_honor");
  response.error.payment_intent = { ...declinedIntent("do_not_honor"), metadata: { call: "pc_2" } };
  assert.deepEqual((await sent(operation(), json(402, response))).reply, unknown("garbage"));
});

const LATER: [name: string, requested: Operation, object: unknown][] = [
  ["a capture with another payment", laterOperation("capture"), intent({ id: "pi_2" })],
  ["a capture that is not done", laterOperation("capture"), intent({ status: "requires_capture" })],
  [
    "a refund of another operation",
    laterOperation("refund"),
    refund({ metadata: { call: "pc_2" } }),
  ],
  ["a refund without metadata", laterOperation("refund"), refund({ metadata: null })],
];
for (const [name, requested, object] of LATER) {
  Deno.test(`send() ${name} is garbage`, async () => {
    assert.deepEqual((await sent(requested, json(200, object))).reply, unknown("garbage"));
  });
}

const BREAKS: [name: string, written: string | null][] = [
  ["silence", null],
  ["half of a response", "{"],
];
for (const [name, written] of BREAKS) {
  Deno.test(`send() ${name} until the deadline is a timeout`, async () => {
    const deadline = new AbortController();
    await using server = await startFaultServer((response) => {
      if (written === null) return deadline.abort();
      response.writeHead(200, { "content-length": "1000" });
      response.write(written, () => deadline.abort());
    });
    const settings = { base_url: server.base_url };
    const reply = await connector.charges.send(account({ settings }), operation(), deadline.signal);
    assert.deepEqual(reply, unknown("timeout"));
  });
}

Deno.test("send() no server at all is a lost connection", async () => {
  const closed = await startFaultServer(json(200, {}));
  await closed[Symbol.asyncDispose]();
  const settings = { base_url: closed.base_url };
  const reply = await connector.charges.send(account({ settings }), operation(), patient());
  assert.deepEqual(reply, unknown("connection"));
});

Deno.test("send() settings that nobody has checked send nothing", async () => {
  const settings = { base_url: "https://stripe.example" };
  const reply = await connector.charges.send(account({ settings }), operation(), patient());
  assert.deepEqual(reply, unknown("connection"));
});
