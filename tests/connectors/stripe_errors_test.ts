/** Stripe's error codes in our words. */

import assert from "node:assert/strict";
import {
  adviceOf,
  declineCodeOf,
  readErrorResponse,
} from "../../shared/connectors/stripe/stripe_errors.ts";
import type { DeclineAdvice, DeclineCode } from "../../shared/core/errors.ts";
import type { ProviderOp } from "../../shared/domain/providers/connector.ts";

const DECLINES: [decline_code: string, code: string, ours: DeclineCode][] = [
  ...[
    "generic_decline",
    "do_not_honor",
    "call_issuer",
    "card_not_supported",
    "currency_not_supported",
    "lost_card",
    "stolen_card",
    "pickup_card",
    "restricted_card",
    "expired_card",
    "incorrect_cvc",
    "invalid_account",
    "processing_error",
    "try_again_later",
    "issuer_not_available",
    "a_code_of_next_year",
  ].map((decline) =>
    [decline, "card_declined", "payment_declined"] as [string, string, DeclineCode]
  ),
  ["insufficient_funds", "card_declined", "insufficient_funds"],
  ["withdrawal_count_limit_exceeded", "card_declined", "insufficient_funds"],
  ["card_velocity_exceeded", "card_declined", "insufficient_funds"],
  ["authentication_required", "authentication_required", "authentication_failed"],
  ["authentication_not_handled", "card_declined", "authentication_failed"],
  ["", "payment_intent_authentication_failure", "authentication_failed"],
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
const refused = (param?: string) =>
  param === undefined
    ? { refused: "provider_refused", message: "No." }
    : { refused: "invalid_parameter", message: "No.", param };
const unknown = (reason: string, may_repeat: boolean) => ({ unknown: reason, may_repeat });
const SYNC = { sync: true };

/** Each error has the message "No.". */
const ERRORS: [op: ProviderOp, status: number, error: Record<string, unknown>, reading: unknown][] =
  [
    [
      "authorize",
      400,
      { type: INVALID, code: "resource_missing", param: "payment_method" },
      refused("card.token"),
    ],
    [
      "authorize",
      404,
      { type: INVALID, code: "resource_missing", param: "payment_method" },
      refused("card.token"),
    ],
    [
      "authorize",
      400,
      { type: INVALID, code: "payment_method_unexpected_state" },
      refused("card.token"),
    ],
    [
      "authorize",
      400,
      { type: INVALID, code: "amount_too_small", param: "amount" },
      refused("amount"),
    ],
    ["authorize", 400, { type: INVALID, code: "amount_too_large" }, refused("amount")],
    ["authorize", 400, { type: INVALID, param: "currency" }, refused("currency")],
    [
      "authorize",
      400,
      { type: INVALID, code: "url_invalid", param: "return_url" },
      refused("return_url"),
    ],
    ["authorize", 400, { type: INVALID, code: "parameter_unknown", param: "confirm" }, refused()],
    ["authorize", 400, { type: INVALID }, refused()],
    ["authorize", 402, { type: "card_error", code: "card_declined" }, unknown("garbage", false)],
    ["capture", 400, { type: INVALID, code: "payment_intent_unexpected_state" }, SYNC],
    ["capture", 400, { type: INVALID, code: "charge_already_captured" }, SYNC],
    ["capture", 400, { type: INVALID, code: "charge_expired_for_capture" }, SYNC],
    ["capture", 402, { type: "card_error", code: "card_declined" }, SYNC],
    ["capture", 400, { type: INVALID, param: "amount_to_capture" }, refused("amount")],
    ["capture", 404, { type: INVALID, code: "resource_missing", param: "intent" }, refused()],
    ["cancel", 400, { type: INVALID, code: "payment_intent_unexpected_state" }, SYNC],
    ["cancel", 404, { type: INVALID, code: "resource_missing", param: "intent" }, refused()],
    ["refund", 400, { type: INVALID, code: "charge_already_refunded" }, refused()],
    ["refund", 400, { type: INVALID, code: "charge_disputed" }, refused()],
    ["refund", 400, { type: INVALID, param: "amount" }, refused()],
    ["refund", 402, { type: INVALID, code: "balance_insufficient" }, refused()],
    ["refund", 400, { type: "idempotency_error" }, unknown("idempotency_conflict", false)],
    [
      "authorize",
      400,
      { type: "idempotency_error", param: "amount" },
      unknown("idempotency_conflict", false),
    ],
    ["authorize", 400, { type: INVALID, code: "lock_timeout" }, unknown("rate_limited", true)],
    ["authorize", 400, { type: "api_error" }, unknown("server_error", true)],
    ["authorize", 405, { type: INVALID, param: "amount" }, unknown("garbage", true)],
    ["authorize", 301, { type: INVALID, param: "amount" }, unknown("garbage", true)],
    ["authorize", 400, { param: "amount" }, unknown("garbage", true)],
  ];

for (const [op, status, error, reading] of ERRORS) {
  const { type, code, param } = error;
  const name = [op, status, type, code, param].filter((part) => part !== undefined).join(" ");
  Deno.test(`readErrorResponse() ${name} is ${JSON.stringify(reading)}`, () => {
    const body = { error: { ...error, message: "No." } };
    assert.deepEqual(readErrorResponse(op, { status, body, replayed: false }), reading);
  });
}

Deno.test("readErrorResponse() gives the payment that the error shows", () => {
  const error = { type: "card_error", code: "card_declined", payment_intent: { id: "pi_1" } };
  const reading = readErrorResponse("authorize", { status: 402, body: { error }, replayed: false });
  assert.deepEqual(reading, { intent: { id: "pi_1" }, error });
});

Deno.test("readErrorResponse() repeats Stripe's message in one line of 200 characters", () => {
  const message = `No.\n\u0000${"x".repeat(300)}`;
  const body = { error: { type: INVALID, message } };
  const reading = readErrorResponse("authorize", { status: 400, body, replayed: false });
  assert.deepEqual(reading, { refused: "provider_refused", message: `No. ${"x".repeat(196)}` });
});
