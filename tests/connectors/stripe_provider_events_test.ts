/** Stripe's objects as provider events. */

import assert from "node:assert/strict";
import {
  chargeFee,
  disputeEvents,
  intentEvents,
  type ProviderEventSource,
  refundEvents,
} from "../../shared/connectors/stripe/stripe_provider_events.ts";
import {
  BalanceTransaction,
  Charge,
  Dispute,
  PaymentIntent,
  SetupIntent,
  StripeRefund,
} from "../../shared/connectors/stripe/stripe_objects.ts";
import type { ProviderEvent } from "../../shared/domain/providers/connector.ts";
import {
  charge,
  declinedIntent,
  dispute,
  intent,
  movement,
  NOW,
  PAYMENT_ID,
  refund,
  REFUND_ID,
  setup,
} from "../support/connectors/stripe_case.ts";

const KEPT = { account: "pac_1", customer: "cus_1", token: "pm_1" };
const RESPONSE: ProviderEventSource = { account_id: "pac_1", livemode: true, event_seconds: null };
const EVENT: ProviderEventSource = { ...RESPONSE, event_seconds: NOW + 60 };
const time = (seconds: number) => new Date(seconds * 1000).toISOString();
const eventsOf = (object: unknown, source = RESPONSE) =>
  intentEvents(source, PaymentIntent.parse(object));
/** Reference, operation, state, amount, and reason and advice if there are any. */
const short = (all: ProviderEvent[]) =>
  all.map(({ reference, op, state, amount_minor, failure_code, decline_code, advice }) =>
    [reference, op, state, amount_minor, failure_code ?? decline_code, advice]
      .filter((part) => part !== undefined).join(" ")
  );

const CARD = { brand: "visa", last4: "4242", exp_month: 12, exp_year: 2034 };
const ALONE: [name: string, members: Record<string, unknown>, events: unknown][] = [
  ["", {}, [["succeeded", { shown: CARD, kept: KEPT }, undefined]]],
  // A sync shows the card.
  ["as a notification shows it", { payment_method: "pm_1" }, [
    ["succeeded", { kept: KEPT, is_partial: true }, undefined],
  ]],
  ["that is declined", {
    status: "requires_payment_method",
    payment_method: null,
    last_setup_error: { type: "card_error", decline_code: "insufficient_funds" },
  }, [["declined", { kept: { account: "pac_1", customer: "cus_1" } }, "insufficient_funds"]]],
  ["of another program", { metadata: {} }, []],
  ["of another program with our names", { metadata: { payment: PAYMENT_ID } }, []],
];
for (const [name, members, expected] of ALONE) {
  Deno.test(`intentEvents() of a card that is saved alone ${name}`, () => {
    const events = intentEvents(RESPONSE, SetupIntent.parse(setup(members)));
    assert.deepEqual(
      events.map(({ state, card, decline_code }) => [state, card, decline_code]),
      expected,
    );
    for (const event of events) {
      assert.deepEqual([event.op, event.amount_minor], ["authorize", 0]);
      assert.equal(event.provider_reference, "seti_1");
    }
  });
}

Deno.test("intentEvents() of a payment that saves its card has the references", () => {
  const [event] = eventsOf(intent({ customer: "cus_1", payment_method: "pm_1" }));
  assert.deepEqual(event!.card?.kept, KEPT);
});

Deno.test("intentEvents() of a payment with its charge are the success and the fee", () => {
  const common = {
    ...{ account_id: "pac_1", subject_id: PAYMENT_ID, refund_id: null },
    ...{ provider_reference: "pi_1", state: "succeeded", currency: "EUR" },
    ...{ at: time(NOW + 2), livemode: false },
  };
  const paid = { reference: "pi_1:succeeded", object_id: "pi_1", op: "authorize" };
  const fee = { reference: "ch_1:fee", object_id: "ch_1", op: "fee" };
  assert.deepEqual(eventsOf(intent()), [
    { ...common, ...paid, amount_minor: 1099 },
    { ...common, ...fee, amount_minor: 41 },
  ]);
});

const BANK = "https://bank.example/3ds";
const challenge = (next_action: unknown) =>
  intent({ status: "requires_action", latest_charge: null, next_action });
const redirect = (url: unknown) =>
  challenge({ type: "redirect_to_url", redirect_to_url: { url, return_url: "x" } });

const ended = (cancellation_reason: string, latest_charge: string | null) =>
  intent({ status: "canceled", cancellation_reason, latest_charge });

const advised = {
  ...declinedIntent("generic_decline"),
  last_payment_error: { type: "card_error", advice_code: "try_again_later" },
};
const blocked = {
  ...declinedIntent("generic_decline"),
  latest_charge: charge({ outcome: { type: "blocked" } }),
};

const PAID = "pi_1:succeeded authorize succeeded 1099";
const DECLINED = "pi_1:declined authorize declined 1099";
const CANCELLED = "pi_1:cancelled cancel cancelled 1099";
const REFUSED = "pi_1:failed authorize failed 1099 provider_refused";
const withFee = (fee: number) =>
  intent({ latest_charge: charge({ balance_transaction: movement({ fee }) }) });
const captured = intent({ capture_method: "manual", amount_received: 700 });
const authorized = intent({ status: "requires_capture", amount_capturable: 1099 });
const krona = { currency: "isk", amount_received: 50_000, latest_charge: null };

const INTENTS: [name: string, object: unknown, ...provider_events: string[]][] = [
  ["a capture", captured, "pi_1:succeeded capture succeeded 700", "ch_1:fee fee succeeded 41"],
  ["a payment whose fee is not known yet", intent({ latest_charge: "ch_1" }), PAID],
  ["a payment whose fee is below zero", withFee(-3), PAID, "ch_1:fee fee returned 3"],
  ["a payment without a fee", withFee(0), PAID],
  ["a payment whose charge does not fit", intent({ latest_charge: { id: 7 } }), PAID],
  ["an authorized payment", authorized, "pi_1:authorized authorize authorized 1099"],
  ["a processing payment", intent({ status: "processing" }), "pi_1:pending authorize pending 1099"],
  ["a challenge", redirect(BANK), "pi_1:requires_action authorize requires_action 1099"],
  ["a challenge for Stripe's scripts", challenge({ type: "use_stripe_sdk" }), REFUSED],
  ["a challenge at a script", redirect("javascript:alert(1)"), REFUSED],
  ["a declined payment", declinedIntent("lost_card"), `${DECLINED} payment_declined`],
  ["a decline with the issuer's advice", advised, `${DECLINED} payment_declined retry_later`],
  ["a payment that Stripe has blocked", blocked, `${DECLINED} aml_blocked`],
  ["a cancelled payment", intent({ status: "canceled" }), CANCELLED],
  ["an abandoned payment", ended("abandoned", null), "pi_1:expired abandon failed 1099 expired"],
  ["an abandoned payment whose payer has authenticated", ended("abandoned", "ch_1"), CANCELLED],
  ["a payment that somebody has cancelled", ended("requested_by_customer", null), CANCELLED],
  ["a payment that nobody has tried", intent({ status: "requires_payment_method" })],
  ["a payment that nobody has confirmed", intent({ status: "requires_confirmation" })],
  ["a payment in a state of next year", intent({ status: "paused" })],
  ["a payment in ISK", intent(krona), "pi_1:succeeded authorize succeeded 500"],
  ["an amount that our units cannot represent", intent({ currency: "isk" })],
];

for (const [name, object, ...expected] of INTENTS) {
  Deno.test(`intentEvents() of ${name} are [${expected}]`, () => {
    assert.deepEqual(short(eventsOf(object)), expected);
  });
}

Deno.test("intentEvents() of a challenge has the address for the payer", () => {
  const [event] = eventsOf(redirect(BANK));
  assert.deepEqual(event!.next_action, { type: "authenticate", url: BANK });
});

const method = { object: "payment_method", card: CARD };
const waiting = redirect(BANK);
const CARDS: [name: string, object: object, card: object | undefined][] = [
  ["a charge", intent({ latest_charge: charge({ payment_method_details: { card: CARD } }) }), CARD],
  ["the payment method before a charge", { ...waiting, payment_method: method }, CARD],
  [
    "the error after a decline",
    {
      ...declinedIntent("lost_card"),
      last_payment_error: { type: "card_error", payment_method: method },
    },
    CARD,
  ],
  ["nowhere if the payment method is an id", { ...waiting, payment_method: "pm_1" }, undefined],
];
for (const [name, object, card] of CARDS) {
  Deno.test(`intentEvents() takes the card from ${name}`, () => {
    assert.deepEqual(eventsOf(object)[0]!.card?.shown, card);
  });
}

Deno.test("intentEvents() of a decline names our payment and never a lost card", () => {
  const [event] = eventsOf(declinedIntent("lost_card"));
  assert.equal(event!.subject_id, PAYMENT_ID);
  assert.doesNotMatch(JSON.stringify(event), /lost/);
});

Deno.test("intentEvents() ignores ids of other programs in the metadata", () => {
  const [event] = eventsOf(intent({ metadata: { payment: "order 7" } }));
  assert.equal(event!.subject_id, null);
  assert.equal(event!.provider_reference, "pi_1");
});

const unmoved = intent({ latest_charge: charge({ balance_transaction: "txn_1" }) });
const TIMES: [name: string, object: unknown, source: ProviderEventSource, at: number][] = [
  ["the movement for a success", intent(), EVENT, NOW + 2],
  ["the event without a movement", intent({ latest_charge: "ch_1" }), EVENT, NOW + 60],
  ["the charge without an event", unmoved, RESPONSE, NOW + 1],
  ["the payment without a charge", intent({ latest_charge: "ch_1" }), RESPONSE, NOW],
  ["the cancel", intent({ status: "canceled", canceled_at: NOW + 9 }), RESPONSE, NOW + 9],
];
for (const [name, object, source, at] of TIMES) {
  Deno.test(`intentEvents() has the time of ${name}`, () => {
    assert.equal(eventsOf(object, source)[0]!.at, time(at));
  });
}

const REFUNDS: [status: string | null, expected: string][] = [
  ["pending", "re_1:pending refund pending 300"],
  ["requires_action", "re_1:pending refund pending 300"],
  [null, "re_1:pending refund pending 300"],
  ["succeeded", "re_1:succeeded refund succeeded 300"],
  ["failed", "re_1:failed refund failed 300 processing_failed"],
  ["canceled", "re_1:failed refund failed 300 processing_failed"],
];
for (const [status, expected] of REFUNDS) {
  Deno.test(`refundEvents() of a refund that is ${status} are ${expected}`, () => {
    const all = refundEvents(RESPONSE, StripeRefund.parse(refund({ status })));
    assert.deepEqual(short(all), [expected]);
    assert.equal(all[0]!.subject_id, PAYMENT_ID);
    assert.equal(all[0]!.refund_id, REFUND_ID);
    // A refund of Stripe has no livemode: the key or the event decides.
    assert.equal(all[0]!.livemode, true);
  });
}

Deno.test("refundEvents() of a refund from the dashboard names only the payment at Stripe", () => {
  const [event] = refundEvents(RESPONSE, StripeRefund.parse(refund({ metadata: {} })));
  assert.deepEqual([event!.subject_id, event!.refund_id, event!.provider_reference], [
    null,
    null,
    "pi_1",
  ]);
});

Deno.test("refundEvents() of a refund whose money came back are both movements, with their times", () => {
  const failure_balance_transaction = movement({ id: "txn_3", created: NOW + 900 });
  const failed = StripeRefund.parse(refund({ status: "failed", failure_balance_transaction }));
  const all = refundEvents(EVENT, failed);
  assert.deepEqual(short(all), [
    "re_1:succeeded refund succeeded 300",
    "re_1:failed refund returned 300 processing_failed",
  ]);
  assert.deepEqual(all.map(({ at }) => at), [time(NOW + 2), time(NOW + 900)]);
});

Deno.test("refundEvents() of a refund from the dashboard without a movement are none", () => {
  // The end of an authorization shows as a refund, which moves no money.
  const released = refund({ metadata: {}, balance_transaction: null });
  assert.deepEqual(refundEvents(EVENT, StripeRefund.parse(released)), []);
});

const TAKEN: [number, number] = [-1099, 1500];
const BACK: [number, number] = [1099, 0];
const DISPUTED = "du_1:disputed dispute disputed 1099";
const FEE = "du_1:fee fee succeeded 1500";
const REVIEWED = "du_1:under_review dispute dispute_under_review 1099";
const WON = "du_1:won dispute dispute_won 1099";

const FEE_BACK = "du_1:fee_returned fee returned 1500";
const FEE_AGAIN = "du_1:fee_returned fee succeeded 700";
const LOST = "du_1:lost dispute dispute_lost 1099";

const DISPUTES: [name: string, object: unknown, ...provider_events: string[]][] = [
  ["an inquiry", dispute("warning_needs_response")],
  ["an inquiry under review", dispute("warning_under_review")],
  ["a closed inquiry", dispute("warning_closed")],
  ["a prevented dispute", dispute("prevented")],
  ["a prevented dispute that took the money", dispute("prevented", TAKEN), DISPUTED, FEE, LOST],
  ["a prevented one whose money is back", dispute("prevented", TAKEN, BACK), DISPUTED, FEE, WON],
  ["a closed inquiry with money back", dispute("warning_closed", TAKEN, BACK), DISPUTED, FEE, WON],
  [
    "a withdrawal of another amount",
    dispute("needs_response", [-500, 0]),
    "du_1:disputed dispute disputed 500",
  ],
  ["a state of next year", dispute("paused")],
  ["a withdrawal", dispute("needs_response", TAKEN), DISPUTED, FEE],
  ["a withdrawal in a state of next year", dispute("paused", TAKEN), DISPUTED, FEE],
  ["an open dispute without movements", dispute("needs_response"), DISPUTED],
  ["a dispute under review without movements", dispute("under_review"), DISPUTED, REVIEWED],
  ["a dispute under review", dispute("under_review", TAKEN), DISPUTED, REVIEWED, FEE],
  ["a lost dispute", dispute("lost", TAKEN), DISPUTED, FEE, LOST],
  ["a won dispute before the money is back", dispute("won", TAKEN), DISPUTED, FEE],
  ["a won dispute", dispute("won", TAKEN, BACK), DISPUTED, FEE, WON],
  ["a won dispute and its fee", dispute("won", TAKEN, [1099, -1500]), DISPUTED, FEE, WON, FEE_BACK],
  ["a win with another fee", dispute("won", TAKEN, [1099, 700]), DISPUTED, FEE, WON, FEE_AGAIN],
  [
    "a withdrawal with a part of the fee back",
    dispute("needs_response", [-1099, -200]),
    DISPUTED,
    "du_1:fee fee returned 200",
  ],
  ["money back without a withdrawal", dispute("needs_response", BACK)],
  ["a won dispute without movements", dispute("won"), DISPUTED, WON],
];
for (const [name, object, ...expected] of DISPUTES) {
  Deno.test(`disputeEvents() of ${name} are [${expected}]`, () => {
    const all = disputeEvents(EVENT, Dispute.parse(object));
    assert.deepEqual(short(all), expected);
    assert.ok(all.every(({ provider_reference }) => provider_reference === "pi_1"));
  });
}

const REASONS: [reason: string, ours: string][] = [
  ["fraudulent", "fraudulent"],
  ["product_not_received", "product_not_received"],
  ["duplicate", "duplicate"],
  ["credit_not_processed", "general"],
];
for (const [reason, ours] of REASONS) {
  Deno.test(`disputeEvents() of a dispute with the reason ${reason} have ${ours}`, () => {
    const evidence_details = { due_by: NOW + 86_400, submission_count: 0 };
    const object = { ...dispute("needs_response", TAKEN), reason, evidence_details };
    const [disputed] = disputeEvents(EVENT, Dispute.parse(object));
    assert.deepEqual(disputed!.dispute, { reason: ours, evidence_due_by: time(NOW + 86_400) });
  });
}

Deno.test("disputeEvents() has the times of the movements", () => {
  const all = disputeEvents(EVENT, Dispute.parse(dispute("won", TAKEN, BACK)));
  assert.deepEqual(all.map(({ at }) => at), [time(NOW + 60), time(NOW + 60), time(NOW + 120)]);
});

Deno.test("disputeEvents() are the first movements, in any order of the list", () => {
  const again: [number, number] = [-900, 300];
  const listed = dispute("lost", TAKEN, BACK, again);
  const all = disputeEvents(EVENT, Dispute.parse(listed));
  const newest = { ...listed, balance_transactions: listed.balance_transactions.toReversed() };
  assert.deepEqual(disputeEvents(EVENT, Dispute.parse(newest)), all);
  assert.deepEqual(short(all), [DISPUTED, FEE, WON]);
});

const held = (capture_before?: number) =>
  intent({
    status: "requires_capture",
    amount_capturable: 1099,
    latest_charge: charge({
      payment_method_details: { card: { ...CARD, ...(capture_before && { capture_before }) } },
    }),
  });
Deno.test("intentEvents() of an authorization has the end that the charge names", () => {
  assert.equal(eventsOf(held(NOW + 432_000))[0]!.card?.capture_before, time(NOW + 432_000));
  assert.equal(eventsOf(held())[0]!.card?.capture_before, undefined);
});

Deno.test("intentEvents() is partial where the charge is not shown", () => {
  const partial = (object: unknown) => eventsOf(object)[0]!.card?.is_partial;
  assert.equal(partial(intent({ latest_charge: "ch_1" })), true);
  assert.equal(partial({ ...held(), latest_charge: "ch_1" }), true);
  assert.equal(partial(intent()), undefined);
  assert.equal(partial(declinedIntent("lost_card")), undefined);
});

Deno.test("chargeFee() is in the currency of the balance", () => {
  const moved = BalanceTransaction.parse(movement({ currency: "usd", fee: 55 }));
  const [fee] = chargeFee(RESPONSE, Charge.parse(charge()), moved);
  assert.deepEqual([fee!.amount_minor, fee!.currency, fee!.subject_id], [55, "USD", PAYMENT_ID]);
});
