/** Operations at Stripe, against a real HTTP server: requests and replies. */

import assert from "node:assert/strict";
import { stripeConnector } from "../../shared/connectors/stripe/stripe_connector.ts";
import type { Operation, ProviderReply } from "../../shared/domain/providers/connector.ts";
import { json, startFaultServer, type Step, text } from "../support/connectors/fault_server.ts";
import {
  account,
  declinedResponse,
  intent,
  laterOperation,
  operation,
  OPERATION_ID,
  PAYMENT_ID,
  refund,
  REFUND_ID,
  SECRET,
} from "../support/connectors/stripe_case.ts";
import { patient, sent } from "../support/connectors/sent.ts";

const connector = stripeConnector();
const references = (reply: ProviderReply) =>
  "provider_events" in reply ? reply.provider_events.map(({ reference }) => reference) : reply;

const METADATA = {
  "metadata[payment]": PAYMENT_ID,
  "metadata[call]": OPERATION_ID,
  "metadata[environment]": "env_1",
};
const CREATE = {
  amount: "1099",
  currency: "eur",
  payment_method: "pm_card_visa",
  "allowed_payment_method_types[]": "card",
  confirm: "true",
};
const EXPAND_CARD = {
  "expand[0]": "latest_charge.balance_transaction",
  "expand[1]": "payment_method",
};
const EXPAND = { "expand[]": "latest_charge.balance_transaction" };
const MANUAL = { capture: "manual", return_url: null };

const REQUESTS: [name: string, requested: Operation, path: string, form: Record<string, string>][] =
  [
    ["an authorization", operation(), "/v1/payment_intents", {
      ...CREATE,
      capture_method: "automatic",
      return_url: `https://shop.example/back?payment_id=${PAYMENT_ID}`,
      ...METADATA,
      ...EXPAND_CARD,
    }],
    ["an authorization for a capture", operation({}, MANUAL), "/v1/payment_intents", {
      ...CREATE,
      capture_method: "manual",
      error_on_requires_action: "true",
      ...METADATA,
      ...EXPAND_CARD,
    }],
    ["500 ISK", operation({ amount_minor: 500, currency: "ISK" }), "/v1/payment_intents", {
      ...CREATE,
      amount: "50000",
      currency: "isk",
      capture_method: "automatic",
      return_url: `https://shop.example/back?payment_id=${PAYMENT_ID}`,
      ...METADATA,
      ...EXPAND_CARD,
    }],
    ["a capture", laterOperation("capture", 700), "/v1/payment_intents/pi_1/capture", {
      amount_to_capture: "700",
      ...EXPAND,
    }],
    ["a cancel", laterOperation("cancel"), "/v1/payment_intents/pi_1/cancel", EXPAND],
    ["a refund", laterOperation("refund", 300), "/v1/refunds", {
      payment_intent: "pi_1",
      amount: "300",
      ...METADATA,
      "metadata[refund]": REFUND_ID,
      "expand[]": "balance_transaction",
    }],
  ];
for (const [name, requested, path, form] of REQUESTS) {
  Deno.test(`send() ${name} is one POST ${path}`, async () => {
    const { received: [got, ...others] } = await sent(requested, json(400, {}));
    assert.deepEqual(others, []);
    assert.equal(`${got!.method} ${got!.path}`, `POST ${path}`);
    assert.deepEqual([...got!.form], Object.entries(form));
    assert.equal(got!.headers["idempotency-key"], OPERATION_ID);
    assert.equal(got!.headers["stripe-version"], "2026-10-28.endive");
    assert.equal(got!.headers["authorization"], `Bearer ${SECRET}`);
    assert.equal(got!.headers["content-type"], "application/x-www-form-urlencoded");
    assert.equal(got!.headers["stripe-account"], undefined);
  });
}

Deno.test("send() names the connected account", async () => {
  await using server = await startFaultServer(json(200, intent()));
  const settings = { base_url: server.base_url, connected_account: "acct_1" };
  await connector.charges.send(account({ settings }), operation(), patient());
  assert.equal(server.received[0]!.headers["stripe-account"], "acct_1");
});

const provider_refused = { refused: "provider_refused" };
const UNSENT: [name: string, requested: Operation, reply: Record<string, unknown>][] = [
  ["an amount in USDC", operation({ currency: "USDC" }), {
    refused: "invalid_parameter",
    param: "currency",
  }],
  ["a part of a fil", operation({ currency: "KWD" }), {
    refused: "invalid_parameter",
    param: "currency",
  }],
  ["a transfer", operation({ op: "transfer" }), provider_refused],
  [
    "a refund without a payment at Stripe",
    { ...laterOperation("refund"), provider_reference: null },
    provider_refused,
  ],
];
for (const [name, requested, expected] of UNSENT) {
  Deno.test(`send() refuses ${name} and sends nothing`, async () => {
    const { reply, received } = await sent(requested, json(200, intent()));
    assert.deepEqual({ ...reply, message: 0 }, { ...expected, message: 0 });
    assert.deepEqual(received, []);
  });
}

for (const secret of [null, "", "sk_live_1\nX-Evil: 1"]) {
  Deno.test(`send() sends nothing with the secret ${JSON.stringify(secret)}`, async () => {
    await using server = await startFaultServer(json(200, intent()));
    const settings = { base_url: server.base_url };
    const reply = await connector.charges.send(
      account({ settings, secret }),
      operation(),
      patient(),
    );
    assert.deepEqual(reply, { unknown: "unauthorized", may_repeat: true, did_nothing: true });
    assert.deepEqual(server.received, []);
  });
}

const CANCELLED = intent({ status: "canceled", canceled_at: 1_700_000_000 });
const CAPTURED = intent({ capture_method: "manual" });
const RESPONSES: [name: string, requested: Operation, step: Step, provider_events: string[]][] = [
  ["a success", operation(), json(200, intent()), ["pi_1:succeeded", "ch_1:fee"]],
  [
    "a success with 800 kB of umlauts",
    operation(),
    json(200, intent({ description: "ü".repeat(400_000) })),
    ["pi_1:succeeded", "ch_1:fee"],
  ],
  ["a decline", operation(), json(402, declinedResponse("do_not_honor")), ["pi_1:declined"]],
  [
    "a decline as 400",
    operation(),
    json(400, declinedResponse("", "payment_intent_authentication_failure")),
    ["pi_1:declined"],
  ],
  ["a capture", laterOperation("capture"), json(200, CAPTURED), ["pi_1:succeeded", "ch_1:fee"]],
  ["a cancel", laterOperation("cancel"), json(200, CANCELLED), ["pi_1:cancelled"]],
  ["a refund", laterOperation("refund"), json(200, refund()), ["re_1:succeeded"]],
  ["a pending refund", laterOperation("refund"), json(200, refund({ status: "pending" })), [
    "re_1:pending",
  ]],
];
for (const [name, requested, step, provider_events] of RESPONSES) {
  Deno.test(`send() ${name} gives [${provider_events}]`, async () => {
    const { reply } = await sent(requested, step);
    assert.deepEqual(references(reply), provider_events);
  });
}

Deno.test("send() takes the reason of a decline from the error if the payment lacks it", async () => {
  const response = declinedResponse("insufficient_funds");
  response.error.payment_intent.last_payment_error = null as never;
  const { reply } = await sent(operation(), json(402, response));
  assert.ok("provider_events" in reply);
  assert.equal(reply.provider_events[0].decline_code, "insufficient_funds");
});

const unexpected = json(400, {
  error: { type: "invalid_request_error", code: "payment_intent_unexpected_state" },
});
const MOVED: [name: string, requested: Operation, present: Step, expected: unknown][] = [
  ["a capture of a captured payment", laterOperation("capture"), json(200, CAPTURED), [
    "pi_1:succeeded",
    "ch_1:fee",
  ]],
  ["a capture of a cancelled payment", laterOperation("capture"), json(200, CANCELLED), [
    "pi_1:cancelled",
  ]],
  ["a cancel of a captured payment", laterOperation("cancel"), json(200, CAPTURED), [
    "pi_1:succeeded",
    "ch_1:fee",
  ]],
  ["a cancel of a cancelled payment", laterOperation("cancel"), json(200, CANCELLED), [
    "pi_1:cancelled",
  ]],
  [
    "a capture of a payment in a challenge",
    laterOperation("capture"),
    json(200, intent({ status: "requires_action" })),
    {
      refused: "provider_refused",
      message: "The payment at Stripe is in a state that does not allow this",
    },
  ],
  ["a capture before an error of the sync", laterOperation("capture"), text(500, ""), {
    unknown: "server_error",
    may_repeat: true,
  }],
];
for (const [name, requested, present, expected] of MOVED) {
  Deno.test(`send() ${name} returns the present state`, async () => {
    const { reply, received } = await sent(requested, unexpected, present);
    assert.deepEqual(references(reply), expected);
    assert.deepEqual(received.map(({ method }) => method), ["POST", "GET"]);
  });
}

const abandon = laterOperation("abandon");
const WAITING = json(200, intent({ status: "requires_action", latest_charge: null }));
const EXPIRED = json(
  200,
  intent({
    status: "canceled",
    cancellation_reason: "abandoned",
    latest_charge: null,
  }),
);
const HELD = intent({ status: "requires_capture", amount_capturable: 1099 });

/** The end of an abandoned payment: the responses, the methods of the requests, and the reply. */
const ABANDONED: [name: string, steps: Step[], requested: string[], reply: unknown][] = [
  ["a waiting payment", [WAITING, EXPIRED], ["GET", "POST"], ["pi_1:expired"]],
  ["a payment that has ended before", [EXPIRED], ["GET"], ["pi_1:expired"]],
  ["a completed payment", [json(200, intent())], ["GET"], ["pi_1:succeeded", "ch_1:fee"]],
  ["an authorized payment", [json(200, HELD)], ["GET"], ["pi_1:authorized"]],
  ["a payment that completes meanwhile", [WAITING, unexpected, json(200, intent())], [
    "GET",
    "POST",
    "GET",
  ], ["pi_1:succeeded", "ch_1:fee"]],
  ["a payment at a provider that fails", [json(500, {})], ["GET"], {
    unknown: "server_error",
    may_repeat: true,
  }],
  ["a waiting payment, with a lost response", [WAITING, json(500, {})], ["GET", "POST"], {
    unknown: "server_error",
    may_repeat: true,
  }],
];
for (const [name, steps, requested, expected] of ABANDONED) {
  Deno.test(`send() abandon of ${name} is ${JSON.stringify(expected)}`, async () => {
    const { reply, received } = await sent(abandon, ...steps);
    assert.deepEqual(references(reply), expected);
    assert.deepEqual(received.map(({ method }) => method), requested);
    const posted = received.find(({ method }) => method === "POST");
    if (posted === undefined) return;
    assert.equal(posted.path, "/v1/payment_intents/pi_1/cancel");
    assert.deepEqual([...posted.form], [
      ["cancellation_reason", "abandoned"],
      ...Object.entries(EXPAND),
    ]);
    assert.equal(posted.headers["idempotency-key"], OPERATION_ID);
  });
}
