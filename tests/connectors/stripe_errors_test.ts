/**
 * Stripe's errors in our words, and faults of the transport: a response that is not Stripe's is
 * unknown, never a failure.
 */

import assert from "node:assert/strict";
import { stripeConnector } from "../../shared/connectors/stripe/stripe_connector.ts";
import {
  adviceOf,
  declineCodeOf,
  readErrorResponse,
} from "../../shared/connectors/stripe/stripe_errors.ts";
import type { DeclineAdvice, DeclineCode } from "../../shared/core/errors.ts";
import type { Operation, ProviderOp } from "../../shared/domain/providers/connector.ts";
import {
  cut,
  json,
  startFaultServer,
  type Step,
  text,
} from "../support/connectors/fault_server.ts";
import {
  account,
  declinedIntent,
  declinedResponse,
  intent,
  laterOperation,
  operation,
  patient,
  refund,
  sent,
} from "../support/connectors/stripe_case.ts";

const DECLINES: [decline_code: string, code: string, ours: DeclineCode][] = [
  ["generic_decline", "card_declined", "payment_declined"],
  // A payer must not learn that a card is reported lost or stolen.
  ["lost_card", "card_declined", "payment_declined"],
  ["stolen_card", "card_declined", "payment_declined"],
  ["incorrect_cvc", "incorrect_cvc", "payment_declined"],
  ["a_code_of_next_year", "card_declined", "payment_declined"],
  ["insufficient_funds", "card_declined", "insufficient_funds"],
  ["withdrawal_count_limit_exceeded", "card_declined", "insufficient_funds"],
  ["card_velocity_exceeded", "card_declined", "insufficient_funds"],
  ["authentication_required", "authentication_required", "authentication_required"],
  ["authentication_not_handled", "authentication_required", "authentication_failed"],
  ["authentication_not_handled", "card_declined", "authentication_failed"],
  ["", "payment_intent_authentication_failure", "authentication_failed"],
  ["", "setup_intent_authentication_failure", "authentication_failed"],
  ["mobile_device_authentication_required", "card_declined", "authentication_failed"],
  ["fraudulent", "card_declined", "aml_blocked"],
  ["merchant_blacklist", "card_declined", "aml_blocked"],
  ["", "expired_card", "payment_declined"],
  ["", "", "payment_declined"],
];

for (const [decline_code, code, ours] of DECLINES) {
  Deno.test(`declineCodeOf() ${decline_code || code || "without a code"} is ${ours}`, () => {
    assert.equal(declineCodeOf({ decline_code, code }), ours);
  });
}

Deno.test("declineCodeOf() a payment that Stripe has blocked is aml_blocked", () => {
  assert.equal(declineCodeOf({ decline_code: "generic_decline" }, "blocked"), "aml_blocked");
});

const ADVICE: [error: Parameters<typeof adviceOf>[1], ours: DeclineAdvice | undefined][] = [
  [{ advice_code: "try_again_later", decline_code: "generic_decline" }, "retry_later"],
  [{ advice_code: "confirm_card_data", decline_code: "insufficient_funds" }, "use_another_method"],
  [{ advice_code: "do_not_try_again", decline_code: "lost_card" }, "do_not_retry"],
  // The issuer's word on this decline counts more than its code.
  [{ advice_code: "do_not_try_again", decline_code: "issuer_not_available" }, "do_not_retry"],
  [{ advice_code: "advice_of_next_year", decline_code: "generic_decline" }, undefined],
  [{ decline_code: "issuer_not_available" }, "retry_later"],
  [{ decline_code: "processing_error", code: "processing_error" }, "retry_later"],
  [{ code: "processing_error" }, "retry_later"],
  [{ decline_code: "reenter_transaction" }, "retry_later"],
  [{ decline_code: "revocation_of_all_authorizations" }, "do_not_retry"],
  [{ decline_code: "revocation_of_authorization" }, "do_not_retry"],
  [{ decline_code: "stop_payment_order" }, "do_not_retry"],
  [{ advice_code: null, decline_code: "stolen_card", code: "card_declined" }, undefined],
  [{ advice_code: "do_not_try_again", decline_code: "authentication_required" }, undefined],
  [{}, undefined],
];

for (const [error, ours] of ADVICE) {
  Deno.test(`adviceOf() ${JSON.stringify(error)} is ${ours ?? "the usual one"}`, () => {
    assert.deepEqual(adviceOf(declineCodeOf(error), error), ours ? { advice: ours } : {});
  });
}

const INVALID = "invalid_request_error";
const invalid = (code?: string, param?: string) => ({ type: INVALID, code, param });
const DECLINED = { type: "card_error", code: "card_declined" };
const refused = (param?: string) =>
  param === undefined
    ? { refused: "provider_refused", message: "No." }
    : { refused: "invalid_parameter", message: "No.", param };
const unknown = (reason: string, may_repeat = true) => ({ unknown: reason, may_repeat });
const GARBAGE = unknown("garbage");
const [CAPTURE, REFUND] = [laterOperation("capture"), laterOperation("refund")];
const SYNC = { sync: true };

/** Each error has the message "No.". */
const ERRORS: [op: ProviderOp, status: number, error: Record<string, unknown>, reading: unknown][] =
  [
    ["authorize", 400, invalid("resource_missing", "payment_method"), refused("card.token")],
    ["authorize", 404, invalid("resource_missing", "payment_method"), refused("card.token")],
    ["authorize", 400, invalid("payment_method_unexpected_state"), refused("card.token")],
    ["authorize", 400, invalid("amount_too_small", "amount"), refused("amount")],
    ["authorize", 400, invalid("amount_too_large"), refused("amount")],
    ["authorize", 400, invalid(undefined, "currency"), refused("currency")],
    ["authorize", 400, invalid("url_invalid", "return_url"), refused("return_url")],
    ["authorize", 400, invalid(undefined, "capture_method"), refused("capture")],
    ["authorize", 400, invalid("parameter_unknown", "confirm"), refused()],
    ["authorize", 400, invalid(), refused()],
    ["authorize", 402, DECLINED, unknown("garbage", false)],
    ["capture", 400, invalid("payment_intent_unexpected_state"), SYNC],
    ["capture", 400, invalid("charge_already_captured"), SYNC],
    ["capture", 400, invalid("charge_expired_for_capture"), SYNC],
    ["capture", 402, DECLINED, SYNC],
    ["capture", 400, invalid(undefined, "amount_to_capture"), refused("amount")],
    ["capture", 404, invalid("resource_missing", "intent"), refused()],
    ["cancel", 400, invalid("payment_intent_unexpected_state"), SYNC],
    ["cancel", 404, invalid("resource_missing", "intent"), refused()],
    ["refund", 400, invalid("charge_already_refunded"), refused()],
    ["refund", 400, invalid("charge_disputed"), refused()],
    ["refund", 400, invalid(undefined, "amount"), refused()],
    ["refund", 402, invalid("balance_insufficient"), refused()],
    ["refund", 400, { type: "idempotency_error" }, unknown("idempotency_conflict", false)],
    [
      "authorize",
      400,
      { type: "idempotency_error", param: "amount" },
      unknown("idempotency_conflict", false),
    ],
    ["detach", 404, invalid("resource_missing", "payment_method"), SYNC],
    ["detach", 400, invalid(), SYNC],
    ["authorize", 400, invalid("lock_timeout"), unknown("rate_limited")],
    ["authorize", 400, { type: "api_error" }, unknown("server_error")],
    ["authorize", 405, invalid(undefined, "amount"), GARBAGE],
    ["authorize", 301, invalid(undefined, "amount"), GARBAGE],
    ["authorize", 400, { param: "amount" }, GARBAGE],
  ];

for (const [op, status, error, reading] of ERRORS) {
  const { type, code, param } = error;
  const name = [op, status, type, code, param].filter((part) => part !== undefined).join(" ");
  Deno.test(`readErrorResponse() ${name} is ${JSON.stringify(reading)}`, () => {
    const body = { error: { ...error, message: "No." } };
    assert.deepEqual(readErrorResponse(op, { status, body, replayed: false }), reading);
  });
}

const USED_BEFORE = "The provided PaymentMethod was previously used with a PaymentIntent without " +
  "Customer attachment. It may not be used again.";
const NOT_KEPT =
  "The customer does not have a payment method with the ID pm_1. The payment method " +
  "must be attached to the customer.";
for (
  const [text, instrument, param, message] of [
    [USED_BEFORE, undefined, "card.token", /send "save" with the first payment/],
    [USED_BEFORE, {}, "instrument", /may not be used again/],
    [NOT_KEPT, {}, "instrument", /attached to the customer/],
  ] as const
) {
  Deno.test(`readErrorResponse() "${text.slice(0, 40)}…" is about ${param}`, () => {
    const error = { type: INVALID, message: text };
    const response = { status: 400, body: { error }, replayed: false };
    const reading = readErrorResponse("authorize", response, instrument);
    assert.ok("refused" in reading && reading.param === param, JSON.stringify(reading));
    assert.match(reading.message, message);
  });
}

Deno.test("readErrorResponse() gives the payment that the error shows", () => {
  const error = { ...DECLINED, payment_intent: { id: "pi_1" } };
  const reading = readErrorResponse("authorize", { status: 402, body: { error }, replayed: false });
  assert.deepEqual(reading, { intent: { id: "pi_1" }, error });
});

Deno.test("readErrorResponse() repeats Stripe's message in one line of 200 characters", () => {
  const message = `No.\n\u0000${"x".repeat(300)}`;
  const body = { error: { type: INVALID, message } };
  const reading = readErrorResponse("authorize", { status: 400, body, replayed: false });
  assert.deepEqual(reading, { refused: "provider_refused", message: `No. ${"x".repeat(196)}` });
});

const REFUSED_KEY = { ...unknown("unauthorized"), did_nothing: true };
const REPLAYED = { "idempotent-replayed": "true" };
const STRIPE_400 = { error: { type: INVALID } };
const STRIPE_500 = { error: { type: "api_error", message: "Try again." } };
const big = JSON.stringify({ ...intent(), description: "x".repeat(10_000_000) });
const foreign_decline = declinedResponse("do_not_honor");
foreign_decline.error.payment_intent = declinedIntent("do_not_honor");
foreign_decline.error.payment_intent.metadata = { call: "pc_2" };
const bytes = (...all: number[]): Step => (response) => void response.end(new Uint8Array(all));

/** Each row: the response, the reply, and the operation, by default an authorization. */
const FAULTS: [name: string, step: Step, reply: unknown, requested?: Operation][] = [
  ["500", json(500, STRIPE_500), unknown("server_error")],
  ["502 from the memory of the key", text(502, "<html>", REPLAYED), unknown("server_error", false)],
  ["424", json(424, STRIPE_500), unknown("server_error")],
  ["429", json(429, STRIPE_400), unknown("rate_limited")],
  ["409", json(409, STRIPE_400), unknown("in_progress")],
  ["401", json(401, STRIPE_400), REFUSED_KEY],
  ["403", json(403, STRIPE_400), REFUSED_KEY],
  ["401 in HTML", text(401, "<html>"), unknown("unauthorized")],
  ["401 of another program", json(401, { message: "no" }), unknown("unauthorized")],
  ["400 without an error", json(400, {}), GARBAGE],
  ["200 in HTML", text(200, "<html>"), GARBAGE],
  ["200 with half of a JSON", text(200, JSON.stringify(intent()).slice(0, -9)), GARBAGE],
  ["200 with a list", json(200, [intent()]), GARBAGE],
  ["200 with null", json(200, null), GARBAGE],
  ["200 with deep JSON", text(200, "[".repeat(200_000)), GARBAGE],
  ["200 with 10 MB", text(200, big), { ...GARBAGE, too_long: true }],
  ["200 that is not UTF-8", bytes(0x7b, 0xff, 0x7d), GARBAGE],
  ["200 that ends within a character", bytes(0x7b, 0xc3), GARBAGE],
  ["200 with a refund", json(200, refund()), GARBAGE],
  ["200 with another id", json(200, intent({ id: "ch_1" })), GARBAGE],
  ["200 of another call", json(200, intent({ metadata: { call: "pc_2" } })), GARBAGE],
  ["402 of another operation", json(402, foreign_decline), GARBAGE],
  ["200 without our metadata", json(200, intent({ metadata: {} })), GARBAGE],
  ["200 with a text as amount", json(200, intent({ amount_received: "9" })), GARBAGE],
  ["200 with an unknown status", json(200, intent({ status: "paused" })), GARBAGE],
  ["201", json(201, intent()), GARBAGE],
  ["a redirect", text(302, "", { location: "/v1/payment_intents/x" }), unknown("connection")],
  ["a cut connection", cut(), unknown("connection")],
  ["a cut response", cut(JSON.stringify(intent()).slice(0, 50)), unknown("connection")],
  ["another payment after a capture", json(200, intent({ id: "pi_2" })), GARBAGE, CAPTURE],
  ["a capture not done", json(200, intent({ status: "requires_capture" })), GARBAGE, CAPTURE],
  ["a refund of another call", json(200, refund({ metadata: { call: "pc_2" } })), GARBAGE, REFUND],
  ["a refund without metadata", json(200, refund({ metadata: null })), GARBAGE, REFUND],
];
for (const [name, step, expected, requested = operation()] of FAULTS) {
  Deno.test(`send() ${name} is ${JSON.stringify(expected)}`, async () => {
    const { reply, received } = await sent(requested, step);
    assert.deepEqual(reply, expected);
    // A redirect is not followed. The runtime itself repeats a request without a response.
    assert.equal(new Set(received.map(({ path }) => path)).size, 1);
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
    const to = account({ settings: { base_url: server.base_url } });
    const reply = await stripeConnector().charges.send(to, operation(), deadline.signal);
    assert.deepEqual(reply, unknown("timeout"));
  });
}

Deno.test("send() no server at all, and settings that nobody has checked, are no connection", async () => {
  const closed = await startFaultServer(json(200, {}));
  await closed[Symbol.asyncDispose]();
  for (const base_url of [closed.base_url, "https://stripe.example"]) {
    const to = account({ settings: { base_url } });
    const reply = await stripeConnector().charges.send(to, operation(), patient());
    assert.deepEqual(reply, unknown("connection"), base_url);
  }
});
