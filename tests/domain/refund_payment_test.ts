/**
 * The decisions of refunds. A refund completes at once, or waits for an advance if the settlement
 * is manual; meanwhile it holds its amount. payment_model_test.ts has the states that several moves
 * reach.
 */

import assert from "node:assert/strict";
import { CapturePaymentBody, type MethodKind } from "../../shared/schema/payment_body.ts";
import { type Payment } from "../../shared/schema/payment.ts";
import { type PaymentStatus, type RefundStatus } from "../../shared/schema/statuses.ts";
import { CreateRefundBody } from "../../shared/schema/refund_body.ts";
import { Refund } from "../../shared/schema/refund.ts";
import { decideAdvanceRefund } from "../../shared/sandbox/advance.ts";
import { refundOf } from "../../shared/domain/payments/refund_payment.ts";
import {
  decided,
  MADE_AT,
  NOW,
  paymentWith,
  refundWith,
  refusalOf,
  requestContext,
} from "../support/domain/decided_change.ts";
import {
  type Decide,
  parsed,
  testBodies,
  testMoves,
  testRefusals,
} from "../support/domain/move_case.ts";

const context = requestContext();
const DONE = paymentWith({ status: "completed" });
const PARTLY = paymentWith({ status: "partially_refunded", amount_refunded: 400 });
const MANUAL = paymentWith({ status: "completed", settlement: "manual" });
/** Of 1000, 300 are held by a pending refund. */
const HELD = paymentWith({ ...MANUAL, amount_refunding: 300 });
const ALL_HELD = paymentWith({ ...MANUAL, amount_refunding: 1000 });
const FREE = paymentWith({ amount_minor: 0, amount_captured: 0, status: "completed" });
/** A payment of which the rest was charged back while 300 were being refunded. */
const DISPUTED = paymentWith({ ...HELD, status: "chargeback", amount_disputed: 700 });

const refund = (amount?: number) => (payment: Payment) =>
  decided(refundOf(payment, { amount }, context));
const PENDING = refundWith({ reason: "duplicate", metadata: { order: "7" } });
const move = (to: RefundStatus, members: Partial<Refund> = {}): Decide => (payment) =>
  decideAdvanceRefund(payment, JSON.stringify({ ...PENDING, ...members }), to, context);

/** A part of a payment, and exactly the rest of one. */
const REFUNDED: [payment: Payment, amount: number, status: PaymentStatus][] = [
  [DONE, 1, "partially_refunded"],
  [PARTLY, 600, "refunded"],
];

/** Payments of which 300 were refunded, and the status after that money has come back. */
const COME_BACK: [payment: Payment, status?: PaymentStatus][] = [
  [paymentWith({ status: "refunded", amount_captured: 300, amount_refunded: 300 }), "completed"],
  [paymentWith({ ...DISPUTED, amount_refunded: 300, amount_refunding: 0 })],
  [paymentWith({ ...PARTLY, status: "failed", method_kind: "sepa" })],
];

const returned = (to: RefundStatus): Decide => (payment) =>
  decideAdvanceRefund(payment, JSON.stringify(PENDING), to, context, "AC06");

testMoves([
  ...REFUNDED.map(([payment, amount, status]) => ({
    name: `refund ${amount} of a payment that is ${payment.status}`,
    payment,
    decide: refund(amount),
    http: 201 as const,
    events: ["refund.created", "refund.completed", `payment.${status}`],
    ledger: [`refund available>processor ${amount}`],
    refunds: [`completed ${amount}`],
    members: { status, amount_refunded: payment.amount_refunded + amount },
  })),
  {
    name: "refund a part with manual settlement",
    payment: MANUAL,
    decide: refund(300),
    http: 201,
    events: ["refund.created"],
    refunds: ["pending 300"],
    members: { amount_refunding: 300 },
  },
  {
    name: "complete a pending refund of a part",
    payment: HELD,
    decide: move("completed"),
    events: ["refund.completed", "payment.partially_refunded"],
    ledger: ["refund available>processor 300"],
    refunds: ["completed 300"],
    members: { status: "partially_refunded", amount_refunded: 300, amount_refunding: 0 },
  },
  ...COME_BACK.map(([payment, status]) => ({
    name: `fail a completed refund of a payment that is ${payment.status}`,
    payment,
    decide: move("failed", { status: "completed" }),
    events: ["refund.failed", ...(status ? [`payment.${status}`] : [])],
    ledger: ["refund_reversal processor>available 300"],
    refunds: ["failed 300"],
    members: { ...(status && { status }), amount_refunded: payment.amount_refunded - 300 },
  })),
]);

testRefusals([
  ["refund too much", DONE, refund(1001), "invalid_parameter amount"],
  ["refund the held rest", ALL_HELD, refund(), "invalid_state"],
  ["refund 0", FREE, refund(), "invalid_state"],
  ["a return code of a card", HELD, returned("failed"), "invalid_parameter return_code"],
]);

/** [status of a refund, an advance that it refuses, the advances that it allows] */
const ENDED: [RefundStatus, to: RefundStatus, allowed: RefundStatus[]][] = [
  ["failed", "completed", []],
  ["failed", "pending", []],
  ["completed", "pending", ["failed"]],
];
for (const [status, to, allowed] of ENDED) {
  Deno.test(`decideAdvanceRefund() of a ${status} refund to ${to} is refused`, () => {
    assert.throws(() => move(to, { status })(HELD), {
      code: "invalid_state",
      details: { current_status: status, allowed },
    });
  });
}

for (const method_kind of ["sepa", "swift"] as const) {
  Deno.test(`decideAdvanceRefund() of a ${method_kind} payment shows the code of the bank`, () => {
    const change = returned("failed")(paymentWith({ ...HELD, method_kind }))!;
    const { failure_code, return_code } = JSON.parse(change.response.body);
    assert.deepEqual([failure_code, return_code], ["bank_return", "AC06"]);
  });
}

for (const status of ["pending", "completed", "failed"] as const) {
  Deno.test(`decideAdvanceRefund() to ${status} returns a ${status} refund as it is`, () => {
    const body = JSON.stringify({ ...PENDING, status });
    const change = decideAdvanceRefund(HELD, body, status, context);
    assert.deepEqual(change.response, { status: 200, body });
    const { payment, refunds, ledger, events } = change;
    assert.deepEqual({ payment, refunds, ledger, events }, {
      payment: null,
      refunds: [],
      ledger: [],
      events: [],
    });
  });
}

/** [advance, status of the payment, changed members of the refund] */
const SHOWN: [RefundStatus, Payment, Partial<Refund>][] = [
  ["completed", HELD, { status: "completed", payment_status: "partially_refunded" }],
  ["completed", DISPUTED, { status: "completed", payment_status: "chargeback" }],
  ["failed", HELD, {
    status: "failed",
    payment_status: "completed",
    failure_code: "processing_failed",
    failure_message: "The refund failed while it was processed",
  }],
];

for (const [to, payment, members] of SHOWN) {
  Deno.test(`decideAdvanceRefund() to ${to} by ${payment.status} keeps the other members`, () => {
    const change = move(to)(payment)!;
    const expected = { ...PENDING, ...members, updated_at: NOW };
    assert.deepEqual(JSON.parse(change.response.body), expected);
    assert.deepEqual(Refund.parse(expected), expected);
    const event = change.events.find(({ type }) => type === `refund.${to}`)!;
    assert.equal(event.object, change.response.body);
    assert.equal(change.refunds[0]!.created_at, MADE_AT);
  });
}

Deno.test("refundOf() shows the pending refund in refund.created, its end in the response", () => {
  const change = refund(300)(DONE)!;
  const [created, completed] = change.events.slice(0, 2).map(({ object }) => JSON.parse(object!));
  const begun = { status: "pending", payment_status: "completed" };
  const { status, payment_status, created_at, updated_at } = created;
  assert.deepEqual({ status, payment_status, created_at, updated_at }, {
    ...begun,
    created_at: NOW,
    updated_at: NOW,
  });
  assert.deepEqual({ ...completed, ...begun }, created);
  assert.deepEqual(completed, JSON.parse(change.response.body));
});

Deno.test("refundOf() names the amount that is left", () => {
  assert.throws(() => refund(701)(HELD), { details: { param: "amount", amount_refundable: 700 } });
});

const IBAN = "FR1420041010050500013M02606";
const BRITISH = "GB29NWBK60161331926819";
const ADDRESS = { city: "London", country: "GB" };
const WALLET = "0x000000000000000000000000000000000000dEaD";
const byIban = (iban: string, holder_name: string) => ({ destination: { iban, holder_name } });
const byWallet = { destination: { address: WALLET } };
const shownIban = (country: string, last4: string) => ({
  destination: { iban: { country, last4 } },
});
/** [rail, the body, the refused field or the shown members, whether the payer sent the money] */
const PAYEES: [
  MethodKind,
  body: Record<string, unknown>,
  end: string | Partial<Refund>,
  is_sent?: boolean,
][] = [
  ["sepa", {}, { status: "completed", destination: null, speed: "standard", payee_check: null }],
  ["card", {}, { destination: null, speed: null }],
  ["sepa", { ...byIban(IBAN, "Ada"), speed: "instant" }, {
    ...shownIban("FR", "2606"),
    speed: "instant",
  }],
  ["swift", { destination: { iban: BRITISH, address: ADDRESS } }, shownIban("GB", "6819")],
  ["sepa", byIban(IBAN, "Match Ltd"), { status: "completed", payee_check: "match" }],
  ["sepa", byIban(IBAN, "No match Ltd"), { status: "pending", payee_check: "no_match" }],
  ["stablecoin", byWallet, byWallet],
  ["stablecoin", byWallet, byWallet, true],
  ["stablecoin", {}, { destination: null }],
  ["stablecoin", {}, "destination", true],
  ["stablecoin", { destination: { address: `0x${"0".repeat(40)}` } }, "destination.address"],
  ["stablecoin", { destination: { iban: IBAN } }, "destination.address"],
  ["card", { destination: { iban: IBAN } }, "destination"],
  ["card", { speed: "instant" }, "speed"],
  ["swift", { speed: "instant" }, "speed"],
  ["sepa", byWallet, "destination"],
  ["sepa", { destination: { iban: IBAN, address: WALLET } }, "destination.address"],
  // transfer_test.ts has the rules of payees.
  ["sepa", { destination: { iban: BRITISH } }, "destination.address"],
];
for (const [method_kind, body, end, is_sent] of PAYEES) {
  const origin = is_sent ? " that was sent" : "";
  Deno.test(`refundOf() by ${method_kind}${origin} with ${JSON.stringify(body)}`, () => {
    const sent = is_sent && { amount_received: 1000 };
    const payment = paymentWith({ ...DONE, method_kind, ...sent });
    const decide = () =>
      decided(refundOf(payment, CreateRefundBody.parse({ amount: 1, ...body }), context));
    if (typeof end === "string") {
      return assert.equal(refusalOf(decide), `invalid_parameter ${end}`);
    }
    const shown = JSON.parse(decide().response.body);
    assert.deepEqual({ ...shown, ...end }, shown);
  });
}

/** Bodies of captures and refunds by the refused field. create_body_test.ts has all amounts. */
const BODIES: [param: string | null, ...bodies: string[]][] = [
  [null, "", "{}", '{"amount":400,"amount_minor":400}'],
  ["amount", ...["0", "1.0", '"100"', "null"].map((literal) => `{"amount":${literal}}`)],
  ["amount_minor", '{"amount_minor":1000000000000}', '{"amount":1,"amount_minor":2}'],
];
/** An address with digits that look like a card number. */
const LIKE_A_CARD = "0xd2eeb04b97e7ff96777176145884a48430a039f9";
/** Bodies of refunds. */
const REASONS: typeof BODIES = [
  [null, ...["fraudulent", "requested_by_customer", "other"].map((is) => `{"reason":"${is}"}`)],
  [null, '{"metadata":{"ticket":"7"}}', `{"destination":{"address":"${LIKE_A_CARD}"}}`],
  [null, `{"destination":{"address":{"wallet":"${LIKE_A_CARD}"}}}`],
  ["reason", '{"reason":"because"}', '{"reason":""}', '{"reason":null}'],
  ["metadata.ticket", '{"metadata":{"ticket":7}}'],
];
testBodies("a capture", BODIES, parsed(CapturePaymentBody));
testBodies("a refund", [...BODIES, ...REASONS], parsed(CreateRefundBody));
