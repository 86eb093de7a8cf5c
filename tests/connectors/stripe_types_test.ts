/**
 * Stripe's own package as a second reader: its types fit the shapes that the connector reads and
 * the parameters that it sends, and its version is the one that requests name. The type check of
 * this file is the first test.
 */

import assert from "node:assert/strict";
import Stripe from "stripe";
import type * as z from "zod";
import { STRIPE_EVENT_TYPES } from "../../shared/connectors/stripe/stripe_events.ts";
import type {
  BalanceTransaction,
  Charge,
  Dispute,
  PaymentIntent,
  Payout,
  StripeError,
  StripeEvent,
  StripePage,
  StripeRefund,
} from "../../shared/connectors/stripe/stripe_objects.ts";
import { requestOf } from "../../shared/connectors/stripe/stripe_requests.ts";
import { STRIPE_VERSION } from "../../shared/connectors/stripe/stripe_settings.ts";
import { laterOperation, operation } from "../support/connectors/stripe_case.ts";

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
  Fits<typeof StripePage, Stripe.ApiList<Stripe.PaymentIntent & Record<string, unknown>>>,
  Fits<
    typeof StripeEvent,
    Stripe.PaymentIntentSucceededEvent & { data: { object: Record<string, unknown> } }
  >,
];

/** The type check refuses a name that is not an event of the package. */
const KNOWN = {
  "payment_intent.succeeded": true,
  "payment_intent.payment_failed": true,
  "payment_intent.requires_action": true,
  "payment_intent.processing": true,
  "payment_intent.canceled": true,
  "payment_intent.amount_capturable_updated": true,
  "refund.created": true,
  "refund.updated": true,
  "refund.failed": true,
  "charge.dispute.created": true,
  "charge.dispute.updated": true,
  "charge.dispute.closed": true,
  "charge.dispute.funds_withdrawn": true,
  "charge.dispute.funds_reinstated": true,
  "payout.created": true,
  "payout.paid": true,
  "payout.failed": true,
  "payout.canceled": true,
} satisfies Partial<Record<Stripe.Event["type"], true>>;

/**
 * The parameters of each operation. The type check refuses a name that the version does not have.
 */
const PARAMETERS = {
  authorize: {
    amount: 1,
    currency: "eur",
    payment_method: "pm_1",
    allowed_payment_method_types: ["card"],
    confirm: true,
    capture_method: "automatic",
    return_url: "https://shop.example",
    metadata: {},
    expand: [],
  } satisfies Stripe.PaymentIntentCreateParams,
  capture: { amount_to_capture: 1, expand: [] } satisfies Stripe.PaymentIntentCaptureParams,
  cancel: { expand: [] } satisfies Stripe.PaymentIntentCancelParams,
  abandon: {
    cancellation_reason: "abandoned",
    expand: [],
  } satisfies Stripe.PaymentIntentCancelParams,
  refund: {
    payment_intent: "pi_1",
    amount: 1,
    metadata: {},
    expand: [],
  } satisfies Stripe.RefundCreateParams,
};
const LATER = ["capture", "cancel", "abandon", "refund"] as const;
const CALLS = [operation(), ...LATER.map((op) => laterOperation(op))];
for (const requested of CALLS) {
  Deno.test(`requestOf() an operation to ${requested.op} has parameters of the package`, () => {
    const request = requestOf("env_1", requested);
    assert.ok("fields" in request);
    const names = request.fields.map(([name]) => name.split("[")[0]!);
    const known = Object.keys(PARAMETERS[requested.op as keyof typeof PARAMETERS]);
    assert.deepEqual([...new Set(names)], known);
  });
}

Deno.test("requestOf() without return_url has a parameter of the package", () => {
  const known = { error_on_requires_action: true } satisfies Partial<
    Stripe.PaymentIntentCreateParams
  >;
  const request = requestOf("env_1", operation({}, { return_url: null }));
  assert.ok("fields" in request && request.fields.some(([name]) => name in known));
});

Deno.test("STRIPE_VERSION is the version of the package", () => {
  assert.equal(STRIPE_VERSION, Stripe.API_VERSION);
});

Deno.test("STRIPE_EVENT_TYPES are events of the package, at most 20 as a list of events takes", () => {
  assert.ok(STRIPE_EVENT_TYPES.length <= 20);
  assert.deepEqual([...STRIPE_EVENT_TYPES], Object.keys(KNOWN));
});
