/**
 * The decision of a create with a test key: rows, events, movements, operations and response for
 * every result of the sandbox's provider.
 */

import assert from "node:assert/strict";
import { isChallengeUrl, type PayerUrls } from "../../shared/sandbox/challenge_url.ts";
import { TEST_CARDS, TEST_TOKENS } from "../../shared/domain/providers/test_values.ts";
import { NETWORKS } from "../../shared/core/vocabulary.ts";
import { CreatePaymentBody } from "../../shared/schema/payment_body.ts";
import { paymentOf } from "../../shared/domain/payments/create_payment.ts";
import {
  decided,
  NOW,
  NOW_MS,
  paymentWith,
  requestContext,
  SHOWN_FIELDS,
  summaryOf,
  URLS,
} from "../support/domain/decided_change.ts";

const CAPTURE = "capture processor>available 1000";
const DAY_MS = 86_400_000;
const DISPUTE_END = "dispute_expire after 604800000 ms";
const LATE = "authorize after 2000 ms";
const EXPIRY = `expire after ${7 * DAY_MS} ms`;
const ABANDONED = `abandon after ${DAY_MS} ms`;

const card = (number: string) => ({ number, exp_month: 12, exp_year: 2034, cvc: "123" });
const APPROVED = card("4242424242424242");
const DECLINED = card("4000000000000002");
const SECURE = card("4000002500003155");
const SLOW = card("4000000000000119");
const WALLET = "0x000000000000000000000000000000000000dEaD";
const BAD = `${WALLET.slice(0, -4)}0bad`;

/** The effects of a create by its status: events after the first, movements and operations. */
const EFFECTS: Record<string, { events?: string[]; ledger?: string[]; operations?: string[] }> = {
  pending: { events: [] },
  requires_action: { operations: [ABANDONED] },
  processing: { operations: [LATE] },
  authorized: { operations: [EXPIRY] },
  completed: { ledger: [CAPTURE] },
  refunded: {
    events: ["payment.completed", "refund.created", "refund.completed", "payment.refunded"],
    ledger: [CAPTURE, "refund available>processor 1000"],
  },
  chargeback: {
    events: ["payment.completed", "dispute.created", "payment.chargeback"],
    ledger: [CAPTURE, "chargeback available>chargebacks 1000"],
    operations: [DISPUTE_END],
  },
};
/** The advice of each decline. */
const ADVICE: Record<string, string> = {
  payment_declined: "use_another_method",
  insufficient_funds: "retry_later",
  aml_blocked: "do_not_retry",
};

const MANUAL = { settlement: "manual" };
const LATER = { capture: "manual" };
const IBAN = { iban: "DE89370400440532013000" };
const RETURN = { failure_code: "bank_return", return_code: "R01" };
const REVERT = { failure_code: "onchain_reverted" };
const declined = (failure_code: string) => ({ failure_code });
const byCard = (number: string) => ({ card: card(number) });

/** A body as it is sent, the status, the rail, and members and operations that are not usual. */
const RESULTS: [
  body: Record<string, unknown>,
  status: string,
  kind: string,
  more?: { failure_code?: string; return_code?: string; operations?: string[] },
][] = [
  [{}, "pending", "card"],
  [{ capability: "swift_payment", outcome: "pending" }, "pending", "swift"],
  [{ method_kind: "stablecoin" }, "pending", "stablecoin"],
  [{ outcome: "success" }, "completed", "card"],
  [{ outcome: "pending" }, "pending", "card"],
  [{ outcome: "refunded" }, "refunded", "card"],
  [{ outcome: "chargeback" }, "chargeback", "card"],
  [{ outcome: "success", ...LATER }, "authorized", "card"],
  [{ outcome: "pending", ...LATER }, "pending", "card"],
  [byCard("4242-4242-4242-4242"), "completed", "card"],
  [{ card: { ...card("3782 822463 10005"), cvc: "1234" } }, "completed", "card"],
  [{ card: APPROVED, ...MANUAL }, "completed", "card"],
  [{ card: APPROVED, ...LATER }, "authorized", "card"],
  [byCard("4000 0000 0000 0259"), "chargeback", "card"],
  [byCard("4000-0000-0000-0002"), "declined", "card", declined("payment_declined")],
  [{ card: DECLINED, ...LATER }, "declined", "card", declined("payment_declined")],
  [byCard("4000 0000 0000 9995"), "declined", "card", declined("insufficient_funds")],
  [byCard("4100 0000 0000 0019"), "declined", "card", declined("aml_blocked")],
  [byCard("4000-0025-0000-3155"), "requires_action", "card"],
  [{ card: SECURE, ...LATER }, "requires_action", "card"],
  [{ card: SLOW }, "processing", "card"],
  [{ card: SLOW, ...LATER }, "processing", "card"],
  [{ card: SLOW, ...MANUAL }, "processing", "card", { operations: [] }],
  [{ iban: "DE89 3704 0044 0532 0130 00" }, "completed", "sepa"],
  [{ ...IBAN, method_kind: "swift" }, "completed", "swift"],
  [{ ...IBAN, ...MANUAL }, "pending", "sepa"],
  [{ iban: "de00 0000 0000 0000 0000 99" }, "failed", "sepa", RETURN],
  [{ iban: "DE00000000000000000099", method_kind: "swift" }, "failed", "swift", RETURN],
  [{ iban: "gb82 west 1234 5698 7654 32" }, "completed", "swift"],
  [{ iban: "GB82WEST12345698765432", capability: "sepa_payment" }, "completed", "sepa"],
  [{ iban: "FR1420041010050500013M02606" }, "completed", "sepa"],
  [{ iban: "FR1420041010050500013M02606", currency: "USD" }, "completed", "swift"],
  [{ wallet: ` 0X${WALLET.slice(2, -4)} DEAD ` }, "completed", "stablecoin"],
  [{ wallet: WALLET, currency: "USDT" }, "completed", "stablecoin"],
  [{ wallet: BAD.replace("bad", "BAD") }, "failed", "stablecoin", REVERT],
  [{ wallet: { address: BAD, network: "tron" } }, "failed", "stablecoin", REVERT],
  ...NETWORKS.map((network): typeof RESULTS[number] => [
    { wallet: { address: WALLET, network } },
    "completed",
    "stablecoin",
  ]),
];

function decide(body: Record<string, unknown>, is_error = true, urls: PayerUrls = URLS) {
  const sent = CreatePaymentBody.parse({ amount: 1000, currency: "EUR", ...body });
  return decided(paymentOf(sent, is_error, requestContext()), urls);
}

for (
  const [body, status, kind, { failure_code = null, return_code = null, ...more } = {}] of RESULTS
) {
  Deno.test(`paymentOf() ${JSON.stringify(body)} → ${status}`, () => {
    const usual = EFFECTS[status] ?? {};
    const { ledger = [], operations = [], events = [`payment.${status}`] } = { ...usual, ...more };
    const change = decide({ ...body, reference: "order 7" });
    const summary = summaryOf(change);
    const types = ["payment.created", ...events];
    assert.deepEqual(summary.events, types.map((type, i) => `${i + 1} ${type}`));
    assert.deepEqual(summary.ledger, ledger);
    assert.deepEqual(summary.refunds, status === "refunded" ? ["completed 1000"] : []);
    assert.deepEqual(
      change.operations.map(({ op, delay_ms }) => `${op} after ${delay_ms} ms`),
      operations,
    );
    for (const { subject_id, amount_minor, lease_ms } of change.operations) {
      assert.deepEqual([subject_id, amount_minor, lease_ms], [change.payment!.id, 1000, 0]);
    }
    assert.equal(change.expects, null);

    const { body: stored, amount_released, ...row } = change.payment!;
    const shown = JSON.parse(stored);
    for (const [column, value] of Object.entries(row)) {
      assert.deepEqual(shown[column], value, column);
    }
    assert.deepEqual(
      [shown.status, shown.method_kind, shown.capability],
      [status, kind, `${kind}_payment`],
    );
    const advice = ADVICE[failure_code ?? ""] ?? null;
    assert.deepEqual(
      [shown.failure_code, shown.return_code, shown.advice, typeof shown.failure_message],
      [failure_code, return_code, advice, failure_code ? "string" : "object"],
    );
    assert.equal(amount_released ?? 0, 0);
    assert.equal(shown.amount_captured, ledger.includes(CAPTURE) ? 1000 : 0);
    assert.equal(shown.amount_disputed, status === "chargeback" ? 1000 : 0);
    assert.deepEqual([row.sequence, row.created_at], [types.length, NOW]);
    assert.equal(change.events.at(-1)!.object, undefined);
    const { status: http, body: text } = change.response;
    const returned = JSON.parse(text);
    if (status !== "declined") return assert.deepEqual([http, returned], [201, shown]);
    const { code, type, payment } = returned.error;
    const told = [http, code, type, returned.error.advice];
    assert.deepEqual(told, [402, failure_code, "payment", advice]);
    assert.deepEqual(payment, shown);
  });
}

const MEMBERS = "id object status amount amount_minor currency amount_refunded amount_refunding " +
  "amount_captured amount_disputed amount_received capability method_kind method instrument_id checkout_id " +
  "off_session customer payer description reference metadata next_action return_url capture " +
  "capture_before settlement " +
  "failure_code failure_message advice return_code livemode sequence created_at updated_at " +
  "completed_at cancelled_at";
const PERSON = { email: "ada@example.com", name: "Ada" };
const USD = { currency: "usd" };
const BOTH = { amount: 5, amount_minor: 5, currency: "USD", customer: PERSON, payer: PERSON };
const DONE = { status: "completed", sequence: 2, amount_captured: 1000, completed_at: NOW };
const HELD = { status: "authorized", sequence: 2, capture: "manual" };
const VISA = { brand: "visa", last4: "4242", exp_month: 12 };
const byIban = (type: string, country: string, last4: string) => ({
  ...DONE,
  capability: `${type}_payment`,
  method_kind: type,
  method: { type, iban: { country, last4 }, mandate: null, due_on: null },
});

/** A whole body, and the members of the payment that differ from those of the first one. */
const OBJECTS: [string, body: Record<string, unknown>, members: Record<string, unknown>][] = [
  ["nothing but the amount", {}, {}],
  // Each field has two names, and the payment shows both.
  ...[
    { amount: 5, capability: "card_payment", customer: PERSON },
    { amount: undefined, amount_minor: 5, method_kind: "card", payer: PERSON },
    { amount: 5, method_kind: "card", payer: PERSON },
    { ...BOTH, capability: "card_payment", method_kind: "card" },
  ].map((body): typeof OBJECTS[number] => [JSON.stringify(body), { ...body, ...USD }, BOTH]),
  ["every field that it shows", SHOWN_FIELDS, SHOWN_FIELDS],
  ["a token with manual capture", {
    card: { token: "pm_card_visa" },
    capture: "manual",
    settlement: "manual",
    return_url: "http://localhost:3000/back",
  }, {
    ...HELD,
    capture_before: new Date(NOW_MS + 7 * DAY_MS).toISOString(),
    settlement: "manual",
    return_url: "http://localhost:3000/back",
    method: { type: "card", card: { ...VISA, exp_year: 2040 } },
  }],
  ["a card", { card: APPROVED }, {
    ...DONE,
    method: { type: "card", card: { ...VISA, exp_year: 2034 } },
  }],
  ["sepa with BIC and holder", {
    iban: { iban: "DE89370400440532013000", bic: "COBADEFFXXX", holder_name: "Ada" },
  }, byIban("sepa", "DE", "3000")],
  ["swift", { currency: "USD", iban: "GB82WEST12345698765432" }, {
    ...byIban("swift", "GB", "5432"),
    currency: "USD",
  }],
];
for (const [name, body, members] of OBJECTS) {
  Deno.test(`paymentOf() shows every member of a payment: ${name}`, () => {
    const shown = JSON.parse(decide(body).payment!.body);
    assert.equal(Object.keys(shown).join(" "), MEMBERS);
    assert.match(shown.id, /^pay_[0-9a-hjkmnp-tv-z]{26}$/);
    const fresh = paymentWith({ sequence: 1, created_at: NOW, updated_at: NOW });
    assert.deepEqual(shown, { ...fresh, ...members, id: shown.id });
  });
}

/** A wallet as it is sent, and how the payment shows it. */
const WALLETS: [network: string, asset: string, body: Record<string, unknown>][] = [
  ["ethereum", "USDC", { wallet: WALLET }],
  ["ethereum", "USDT", { wallet: WALLET, currency: "usdt" }],
  ["solana", "USDC", { wallet: { address: WALLET, network: "solana" } }],
  ["ethereum", "USDT", { wallet: { address: WALLET, asset: "USDT" } }],
  ["base", "USDC", {
    wallet: { address: WALLET, network: "base", asset: "USDC" },
    currency: "USDC",
  }],
];
for (const [network, asset, body] of WALLETS) {
  Deno.test(`paymentOf() ${JSON.stringify(body)} shows ${asset} on ${network}`, () => {
    const { method } = JSON.parse(decide(body).payment!.body);
    const { tx_hash, ...wallet } = method.wallet;
    assert.match(tx_hash, /^0x[0-9a-f]{64}$/);
    assert.deepEqual([method.type, wallet], ["stablecoin", { address: WALLET, network, asset }]);
  });
}

Deno.test("paymentOf() returns 201 for a decline if the caller wants no error", () => {
  const change = decide({ card: DECLINED }, false);
  assert.deepEqual([change.response.status, change.response.body], [201, change.payment!.body]);
});

Deno.test("paymentOf() sends the payer to the page for payers, if there is one", () => {
  const actionOf = (urls: PayerUrls) => {
    const change = decide({ card: SECURE }, true, urls);
    const payment = JSON.parse(change.payment!.body);
    return { payment, url: payment.next_action.url as string, operations: change.operations };
  };
  const without = actionOf(URLS);
  const operation = `/api-v1-sandbox/payments/${without.payment.id}/authenticate`;
  assert.equal(without.url, URLS.base_url + operation);
  assert.equal(isChallengeUrl(without.url), false);
  assert.deepEqual(without.operations.map(({ op }) => op), ["abandon"]);

  const hosted = actionOf({ ...URLS, checkout_url: "https://pay.example.com/x" });
  const [, token] = /^https:\/\/pay\.example\.com\/x\/#bank\/([0-9a-f]{48})$/
    .exec(hosted.url)!;
  assert.ok(isChallengeUrl(hosted.url));
  const operations = hosted.operations.map((
    one,
  ) => [one.op, one.provider_reference, one.subject_id]);
  const { id } = hosted.payment;
  assert.deepEqual(operations, [["abandon", null, id], ["authorize", token, id]]);
});

/** Each test token, with what responses show of its card. */
const TOKENS: Record<string, [brand: string, last4: string]> = {
  pm_card_visa: ["visa", "4242"],
  pm_card_mastercard: ["mastercard", "4444"],
  pm_card_amex: ["amex", "0005"],
  pm_card_chargeDeclined: ["visa", "0002"],
  pm_card_chargeDeclinedInsufficientFunds: ["visa", "9995"],
  pm_card_authenticationRequired: ["visa", "3184"],
  pm_card_authenticationRequiredOnSetup: ["visa", "3155"],
  pm_card_chargeCustomerFail: ["visa", "0341"],
  pm_card_late: ["visa", "0119"],
  pm_card_createDispute: ["visa", "0259"],
};
Deno.test("TEST_TOKENS has the published tokens and no other, for published cards", () => {
  assert.deepEqual(Object.keys(TEST_TOKENS).sort(), Object.keys(TOKENS).sort());
  const published = TEST_CARDS.map(({ value }) => value);
  assert.deepEqual(Object.values(TEST_TOKENS).filter((value) => !published.includes(value)), []);
});

for (const [token, number] of Object.entries(TEST_TOKENS)) {
  Deno.test(`paymentOf() with ${token} has the result of its card`, () => {
    const cvc = number.startsWith("37") ? "1234" : "123";
    const by_number = { number, exp_month: 12, exp_year: 2040, cvc };
    for (const capture of ["automatic", "manual"]) {
      const [one, other] = [{ token }, by_number].map((card) => {
        const change = decide({ card, capture });
        const shown = JSON.parse(change.payment!.body);
        delete shown.id;
        delete shown.next_action?.url;
        const operations = change.operations.map(({ op, delay_ms }) => [op, delay_ms]);
        return { ...summaryOf(change), operations, shown, status: change.response.status };
      });
      assert.deepEqual(one, other);
      const [brand, last4] = TOKENS[token]!;
      const card = { brand, last4, exp_month: 12, exp_year: 2040 };
      assert.deepEqual(one!.shown.method, { type: "card", card });
    }
  });
}

Deno.test("paymentOf() adds a transaction hash only to a wallet that pays", () => {
  const hashOf = (body: Record<string, unknown>) =>
    JSON.parse(decide({ wallet: WALLET, ...body }).payment!.body).method.wallet.tx_hash;
  assert.match(hashOf({ outcome: "success" }), /^0x[0-9a-f]{64}$/);
  assert.equal(hashOf({ settlement: "manual" }), null);
  assert.equal(hashOf({ wallet: `${WALLET.slice(0, -4)}0BAD` }), null);
  const without = decide({ method_kind: "stablecoin", outcome: "success" });
  assert.equal(JSON.parse(without.payment!.body).method, null);
});

Deno.test("paymentOf() gives every row of a change a unique id", () => {
  const change = decide({ outcome: "refunded" });
  const ids = [
    change.payment!.id,
    ...change.events.map(({ id }) => id),
    ...change.refunds.map(({ id }) => id),
  ].map((id) => id.slice(id.indexOf("_") + 1));
  // The database derives the ids of a movement's entries from the two ordinals after the
  // transaction's, so no other row may have them.
  for (const { transaction_id } of change.ledger) {
    ids.push(...[0, 1, 2].map((n) => ordinal(transaction_id.slice(4), n)));
  }
  assert.equal(new Set(ids).size, 1 + 5 + 1 + 6);
});

/** The id with a later ordinal. Its last character is a base-32 digit. */
function ordinal(id: string, more: number): string {
  const characters = "0123456789abcdefghjkmnpqrstvwxyz";
  return id.slice(0, -1) + characters[characters.indexOf(id.at(-1)!) + more];
}
