/** Operations at Stripe, against a real HTTP server: requests, and replies to responses. */

import assert from "node:assert/strict";
import { stripeConnector } from "../../shared/connectors/stripe/stripe_connector.ts";
import type { Operation } from "../../shared/domain/providers/connector.ts";
import { json, startFaultServer, type Step, text } from "../support/connectors/fault_server.ts";
import {
  account,
  charging,
  declinedResponse,
  detaching,
  dispute,
  disputeOperation,
  intent,
  keptCard,
  laterOperation,
  operation,
  OPERATION_ID,
  patient,
  PAYMENT_ID,
  references,
  refund,
  REFUND_ID,
  saving,
  SECRET,
  sent,
  setup,
  synced,
} from "../support/connectors/stripe_case.ts";

const { charges } = stripeConnector();
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
const AUTOMATIC = {
  ...CREATE,
  capture_method: "automatic",
  return_url: `https://shop.example/back?payment_id=${PAYMENT_ID}`,
  ...METADATA,
  ...EXPAND_CARD,
};
const MANUAL = {
  ...CREATE,
  capture_method: "manual",
  error_on_requires_action: "true",
  ...METADATA,
  ...EXPAND_CARD,
};
const EXPAND = { "expand[]": "latest_charge.balance_transaction" };
const evidence = "A signed receipt";
const submitted = disputeOperation(evidence);
const saved = disputeOperation(evidence, false);
const accepted = disputeOperation(null);
const held = operation({}, { capture: "manual", return_url: null });
const TEXT = { "evidence[uncategorized_text]": evidence };

const REQUESTS: [name: string, requested: Operation, path: string, form: Record<string, string>][] =
  [
    ["an authorization", operation(), "payment_intents", AUTOMATIC],
    ["an authorization for a capture", held, "payment_intents", MANUAL],
    ["500 ISK", operation({ amount_minor: 500, currency: "ISK" }), "payment_intents", {
      ...AUTOMATIC,
      amount: "50000",
      currency: "isk",
    }],
    ["a capture", laterOperation("capture", 700), "payment_intents/pi_1/capture", {
      amount_to_capture: "700",
      ...EXPAND,
    }],
    ["a cancel", laterOperation("cancel"), "payment_intents/pi_1/cancel", EXPAND],
    ["a refund", laterOperation("refund", 300), "refunds", {
      payment_intent: "pi_1",
      amount: "300",
      ...METADATA,
      "metadata[refund]": REFUND_ID,
      "expand[]": "balance_transaction",
    }],
    ["submitted evidence", submitted, "disputes/du_1", { ...TEXT, submit: "true" }],
    ["saved evidence", saved, "disputes/du_1", { ...TEXT, submit: "false" }],
    ["an acceptance", accepted, "disputes/du_1/close", {}],
    ["an authorization that saves its card", saving(), "payment_intents", {
      ...CREATE,
      capture_method: "automatic",
      return_url: AUTOMATIC.return_url,
      customer: "cus_1",
      setup_future_usage: "off_session",
      ...METADATA,
      ...EXPAND_CARD,
    }],
    ["a card that is saved alone", saving(0), "setup_intents", {
      payment_method: "pm_card_visa",
      "allowed_payment_method_types[]": "card",
      confirm: "true",
      return_url: AUTOMATIC.return_url,
      customer: "cus_1",
      usage: "off_session",
      "metadata[currency]": "eur",
      ...METADATA,
      "expand[]": "payment_method",
    }],
    [
      "the charge of a saved card without the payer",
      charging({ return_url: null, off_session: true }),
      "payment_intents",
      {
        ...CREATE,
        payment_method: "pm_1",
        capture_method: "automatic",
        off_session: "true",
        customer: "cus_1",
        ...METADATA,
        ...EXPAND_CARD,
      },
    ],
  ];
for (const [name, requested, path, form] of REQUESTS) {
  Deno.test(`send() ${name} is one POST /v1/${path}`, async () => {
    const { received: [got, ...others] } = await sent(requested, json(400, {}));
    assert.deepEqual(others, []);
    assert.equal(`${got!.method} ${got!.path}`, `POST /v1/${path}`);
    assert.deepEqual([...got!.form], Object.entries(form));
    assert.equal(got!.headers["idempotency-key"], OPERATION_ID);
    assert.equal(got!.headers["stripe-version"], "2026-10-28.endive");
    assert.equal(got!.headers["authorization"], `Bearer ${SECRET}`);
    assert.equal(got!.headers["content-type"], "application/x-www-form-urlencoded");
    assert.equal(got!.headers["stripe-account"], undefined);
  });
}

const CUSTOMER = json(200, { id: "cus_1", object: "customer" });
const BUSY = json(409, { error: { code: "idempotency_key_in_use" } });
const NO = json(400, { error: { type: "invalid_request_error", message: "No." } });
/** Each row: the attempt, the responses, the number of requests for the customer, and the reply. */
const CUSTOMERS: [attempts: number, steps: Step[], asked: number, reply: unknown][] = [
  // Another request makes the same customer at this moment.
  [1, [BUSY, CUSTOMER, json(200, intent())], 2, ["pi_1:succeeded", "ch_1:fee"]],
  [1, [json(200, {})], 1, { unknown: "garbage", may_repeat: true }],
  [1, [NO], 1, { refused: "provider_refused", message: "No." }],
  // The first attempt can have sent the payment.
  [2, [NO], 1, { unknown: "garbage", may_repeat: false }],
];
for (const [attempts, steps, asked, expected] of CUSTOMERS) {
  Deno.test(`send() ${attempts} for a new customer gives ${JSON.stringify(expected)}`, async () => {
    const { shown, received } = await sent({ ...saving(1099, null), attempts }, ...steps);
    assert.deepEqual(shown, expected);
    for (const { path, form, headers } of received.slice(0, asked)) {
      assert.equal(path, "/v1/customers");
      // Nothing that differs between two requests for one customer.
      const fields = [["metadata[environment]", "env_1"], ["metadata[customer]", "u1"]];
      assert.deepEqual([...form], fields);
      assert.match(String(headers["idempotency-key"]), /^env_1-customer-[0-9a-f]{64}$/);
    }
    const paths = received.slice(asked).map(({ path }) => path);
    assert.deepEqual(paths, "length" in (expected as object) ? ["/v1/payment_intents"] : []);
  });
}

Deno.test("send() names the connected account", async () => {
  await using server = await startFaultServer(json(200, intent()));
  const settings = { base_url: server.base_url, connected_account: "acct_1" };
  await charges.send(account({ settings }), operation(), patient());
  assert.equal(server.received[0]!.headers["stripe-account"], "acct_1");
});

const currency_refused = { refused: "invalid_parameter", param: "currency" };
const provider_refused = { refused: "provider_refused" };
const { dispute: requested_dispute } = submitted.request;
const unnamed = { token: null, dispute: { ...requested_dispute!, reference: null } };
const UNSENT: [name: string, requested: Operation, reply: Record<string, unknown>][] = [
  ["an amount in USDC", operation({ currency: "USDC" }), currency_refused],
  ["a part of a fil", operation({ currency: "KWD" }), currency_refused],
  ["a transfer", operation({ op: "transfer" }), provider_refused],
  [
    "a refund without a payment at Stripe",
    { ...laterOperation("refund"), provider_reference: null },
    provider_refused,
  ],
  ["evidence of a dispute without an id", { ...submitted, request: unnamed }, provider_refused],
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
    const to = account({ settings: { base_url: server.base_url }, secret });
    const reply = await charges.send(to, operation(), patient());
    assert.deepEqual(reply, { unknown: "unauthorized", may_repeat: true, did_nothing: true });
    assert.deepEqual(server.received, []);
  });
}

const PAID = json(200, intent());
const CAPTURED = json(200, intent({ capture_method: "manual" }));
const CANCELLED = json(200, intent({ status: "canceled", canceled_at: 1_700_000_000 }));
const WAITING = json(200, intent({ status: "requires_action", latest_charge: null }));
const HELD = json(200, intent({ status: "requires_capture", amount_capturable: 1099 }));
const ended = { status: "canceled", cancellation_reason: "abandoned", latest_charge: null };
const EXPIRED = json(200, intent(ended));
const LONG = json(200, intent({ description: "ü".repeat(400_000) }));
const DECLINED = json(402, declinedResponse("do_not_honor"));
const UNAUTHENTICATED = declinedResponse("", "payment_intent_authentication_failure");
const PENDING = json(200, refund({ status: "pending" }));
const DOWN = text(500, "");
const MOVED = json(400, {
  error: { type: "invalid_request_error", code: "payment_intent_unexpected_state" },
});

const UNSAVED = { type: "card_error", code: "card_declined", decline_code: "generic_decline" };
const UNSAVED_CARD = {
  status: "requires_payment_method",
  payment_method: null,
  last_setup_error: UNSAVED,
};
const DETACHED = keptCard({ customer: null });
const REMOVED = ["pm_1:detached"];
const NOT_ATTACHED = json(400, {
  error: { type: "invalid_request_error", message: "is not attached to a customer" },
});
const GONE = json(404, { error: { type: "invalid_request_error", code: "resource_missing" } });
const garbage = { unknown: "garbage", may_repeat: true };

const SUCCEEDED = ["pi_1:succeeded", "ch_1:fee"];
const ENDED = ["pi_1:cancelled"];
const server_error = { unknown: "server_error", may_repeat: true };
const other_state = {
  refused: "provider_refused",
  message: "The payment at Stripe is in a state that does not allow this",
};
const authorize = operation();
const capture = laterOperation("capture");
const cancel = laterOperation("cancel");
const give_back = laterOperation("refund");
const abandon = laterOperation("abandon");
const after_decline = laterOperation("abandon", 1099, { status: "declined" });

/** Each row: the operation, the responses, the methods of the requests, and the reply. */
const REPLIES: [name: string, of: Operation, steps: Step[], methods: string, shown: unknown][] = [
  ["a success", authorize, [PAID], "POST", SUCCEEDED],
  ["a success with 800 kB of umlauts", authorize, [LONG], "POST", SUCCEEDED],
  ["a decline", authorize, [DECLINED], "POST", ["pi_1:declined"]],
  ["a decline as 400", authorize, [json(400, UNAUTHENTICATED)], "POST", ["pi_1:declined"]],
  ["a capture", capture, [CAPTURED], "POST", SUCCEEDED],
  ["a cancel", cancel, [CANCELLED], "POST", ENDED],
  ["a refund", give_back, [json(200, refund())], "POST", ["re_1:succeeded"]],
  ["a pending refund", give_back, [PENDING], "POST", ["re_1:pending"]],
  // The payment is in another state than we know: its present one is the result.
  ["a capture of a captured payment", capture, [MOVED, CAPTURED], "POST GET", SUCCEEDED],
  ["a capture of a cancelled payment", capture, [MOVED, CANCELLED], "POST GET", ENDED],
  ["a cancel of a captured payment", cancel, [MOVED, CAPTURED], "POST GET", SUCCEEDED],
  ["a cancel of a cancelled payment", cancel, [MOVED, CANCELLED], "POST GET", ENDED],
  ["a capture in a challenge", capture, [MOVED, WAITING], "POST GET", other_state],
  ["a capture before an error of the sync", capture, [MOVED, DOWN], "POST GET", server_error],
  ["the end of a waiting payment", abandon, [WAITING, EXPIRED], "GET POST", ["pi_1:expired"]],
  ["the end of a payment that has ended", abandon, [EXPIRED], "GET", ["pi_1:expired"]],
  ["the end of a completed payment", abandon, [PAID], "GET", SUCCEEDED],
  ["the end of an authorized payment", abandon, [HELD], "GET", ["pi_1:authorized"]],
  // Somebody has authorized it since, and nobody would capture or release the amount.
  ["the end of a declined payment", after_decline, [HELD, EXPIRED], "GET POST", ["pi_1:expired"]],
  ["the end during a completion", abandon, [WAITING, MOVED, PAID], "GET POST GET", SUCCEEDED],
  ["the end of a payment without a response", abandon, [DOWN], "GET", server_error],
  ["a card that is saved alone", saving(0), [json(200, setup())], "POST", ["seti_1:succeeded"]],
  [
    "a declined card that is saved alone",
    saving(0),
    [json(402, { error: { ...UNSAVED, setup_intent: setup(UNSAVED_CARD) } })],
    "POST",
    ["seti_1:declined"],
  ],
  ["the removal of a card", detaching, [json(200, DETACHED)], "POST", REMOVED],
  ["a repeated removal", detaching, [NOT_ATTACHED, json(200, DETACHED)], "POST GET", REMOVED],
  ["the removal of a card that is gone", detaching, [GONE, GONE], "POST GET", REMOVED],
  ["a refused removal", detaching, [NOT_ATTACHED, json(200, keptCard())], "POST GET", other_state],
  ["a removal that shows the card", detaching, [json(200, keptCard())], "POST", garbage],
  ["an end whose response is lost", abandon, [WAITING, DOWN], "GET POST", server_error],
];
for (const [name, requested, steps, methods, expected] of REPLIES) {
  Deno.test(`send() ${name} gives ${JSON.stringify(expected)}`, async () => {
    const { shown, received } = await sent(requested, ...steps);
    assert.deepEqual(shown, expected);
    assert.equal(received.map(({ method }) => method).join(" "), methods);
    const posted = received.find(({ method }) => method === "POST");
    if (requested.op !== "abandon" || posted === undefined) return;
    assert.equal(posted.path, "/v1/payment_intents/pi_1/cancel");
    const form = [["cancellation_reason", "abandoned"], ...Object.entries(EXPAND)];
    assert.deepEqual([...posted.form], form);
    assert.equal(posted.headers["idempotency-key"], OPERATION_ID);
  });
}

Deno.test("send() takes the reason of a decline from the error if the payment lacks it", async () => {
  const response = declinedResponse("insufficient_funds");
  response.error.payment_intent.last_payment_error = null as never;
  const { reply } = await sent(operation(), json(402, response));
  assert.ok("provider_events" in reply);
  assert.equal(reply.provider_events[0].decline_code, "insufficient_funds");
});

const TAKEN: [number, number] = [-1099, 1500];
const LOST = dispute("lost", TAKEN);
const ABSENT = { absent: true };
const GARBAGE = { unknown: "garbage", may_repeat: true };
const EVIDENCE = [`du_1:evidence:${OPERATION_ID}`];

/** A dispute with evidence. */
function withEvidence(status: string, submission_count: number, uncategorized_text = evidence) {
  const evidence_details = { due_by: 1_900_000_000, submission_count };
  return { ...dispute(status, TAKEN), evidence: { uncategorized_text }, evidence_details };
}

/** Each row: the operation, the dispute at Stripe, and the result of a sync. */
const DISPUTES: [name: string, requested: Operation, object: object, reply: unknown][] = [
  ["submitted evidence", submitted, withEvidence("under_review", 1), EVIDENCE],
  ["saved evidence", saved, withEvidence("needs_response", 0), EVIDENCE],
  ["evidence that is saved only", submitted, withEvidence("needs_response", 0), ABSENT],
  ["other evidence", submitted, withEvidence("under_review", 1, "Other"), ABSENT],
  ["a dispute without evidence", submitted, dispute("needs_response", TAKEN), ABSENT],
  ["evidence of a lost dispute", submitted, LOST, ["du_1:lost"]],
  ["an acceptance", accepted, LOST, ["du_1:lost"]],
  ["an acceptance that nobody made", accepted, withEvidence("under_review", 1), ABSENT],
  ["an acceptance of a won dispute", accepted, dispute("won", TAKEN, [1099, 0]), ["du_1:won"]],
  ["another dispute", accepted, { ...LOST, id: "du_2" }, GARBAGE],
];
for (const [name, requested, object, expected] of DISPUTES) {
  Deno.test(`sync() and send() at ${name} are ${JSON.stringify(expected)}`, async () => {
    const { shown, received } = await synced(requested, json(200, object));
    assert.deepEqual(shown, expected);
    assert.deepEqual(received.map(({ method, path }) => `${method} ${path}`), [
      "GET /v1/disputes/du_1",
    ]);
    // A response that shows no trace of the operation is not Stripe's response to it.
    const response = await sent(requested, json(200, object));
    assert.deepEqual(response.shown, expected === ABSENT ? GARBAGE : expected);
  });
}

Deno.test("the provider event of evidence has the text, the reason and the date", async () => {
  const { reply } = await sent(submitted, json(200, withEvidence("under_review", 1)));
  assert.ok("provider_events" in reply);
  const { op, state, amount_minor, dispute } = reply.provider_events[0];
  assert.deepEqual([op, state, amount_minor], ["dispute_evidence", "succeeded", 1099]);
  assert.deepEqual(dispute, {
    reason: "fraudulent",
    evidence_due_by: "2030-03-17T17:46:40.000Z",
    evidence: { text: evidence, is_submitted: true },
  });
});

Deno.test("find() reads only the dispute of the operation", async () => {
  await using server = await startFaultServer(json(200, LOST));
  const to = account({ settings: { base_url: server.base_url } });
  assert.deepEqual(references(await charges.find(to, accepted, "du_1", patient())), ["du_1:lost"]);
  assert.deepEqual(await charges.find(to, accepted, "du_2", patient()), ABSENT);
});
