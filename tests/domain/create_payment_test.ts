/**
 * The decision of a create with a test key: rows, events, movements, operations and response for
 * every result of the sandbox's provider.
 */

import assert from "node:assert/strict";
import { isChallengeUrl, type PayerUrls } from "../../shared/sandbox/challenge_url.ts";
import { TEST_CARDS, TEST_TOKENS } from "../../shared/domain/providers/test_values.ts";
import { NETWORKS } from "../../shared/core/vocabulary.ts";
import { CreatePaymentBody } from "../../shared/schema/payment.ts";
import {
  decideCreate,
  NOW,
  NOW_MS,
  paymentWith,
  requestContext,
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

/** A part of the body, and the result. */
const RESULTS: [
  name: string,
  body: Record<string, unknown>,
  http: number,
  status: string,
  events: string,
  ledger: string[],
  operations: string[],
][] = [
  ["no instrument", {}, 201, "pending", "created", [], []],
  ["outcome success", { outcome: "success" }, 201, "completed", "created completed", [CAPTURE], []],
  ["outcome pending", { outcome: "pending" }, 201, "pending", "created", [], []],
  [
    "outcome refunded",
    { outcome: "refunded" },
    201,
    "refunded",
    "created completed refund.created refund.completed refunded",
    [CAPTURE, "refund available>processor 1000"],
    [],
  ],
  [
    "outcome chargeback",
    { outcome: "chargeback" },
    201,
    "chargeback",
    "created completed dispute.created chargeback",
    [
      CAPTURE,
      "chargeback available>chargebacks 1000",
    ],
    [DISPUTE_END],
  ],
  ["an approved card", { card: APPROVED }, 201, "completed", "created completed", [CAPTURE], []],
  ["3-D Secure", { card: SECURE }, 201, "requires_action", "created requires_action", [], [
    ABANDONED,
  ]],
  ["a declined card", { card: DECLINED }, 402, "declined", "created declined", [], []],
  [
    "a bank return",
    { iban: "DE00000000000000000099" },
    201,
    "failed",
    "created failed",
    [],
    [],
  ],
  [
    "a reverted transaction",
    { wallet: "0x0000000000000000000000000000000000000BAD" },
    201,
    "failed",
    "created failed",
    [],
    [],
  ],
  ["a late response", { card: SLOW }, 201, "processing", "created processing", [], [LATE]],
  [
    "a late response with manual settlement",
    { card: SLOW, settlement: "manual" },
    201,
    "processing",
    "created processing",
    [],
    [],
  ],
  [
    "an approved card with manual settlement",
    { card: APPROVED, settlement: "manual" },
    201,
    "completed",
    "created completed",
    [CAPTURE],
    [],
  ],
  [
    "a bank with manual settlement",
    { iban: "DE89370400440532013000", settlement: "manual" },
    201,
    "pending",
    "created",
    [],
    [],
  ],
  [
    "an approved card with manual capture",
    { card: APPROVED, capture: "manual" },
    201,
    "authorized",
    "created authorized",
    [],
    [EXPIRY],
  ],
  [
    "outcome success with manual capture",
    { outcome: "success", capture: "manual" },
    201,
    "authorized",
    "created authorized",
    [],
    [EXPIRY],
  ],
  [
    "outcome pending with manual capture",
    { outcome: "pending", capture: "manual" },
    201,
    "pending",
    "created",
    [],
    [],
  ],
  [
    "3-D Secure with manual capture",
    { card: SECURE, capture: "manual" },
    201,
    "requires_action",
    "created requires_action",
    [],
    [ABANDONED],
  ],
  [
    "a declined card with manual capture",
    { card: DECLINED, capture: "manual" },
    402,
    "declined",
    "created declined",
    [],
    [],
  ],
  [
    "a late response with manual capture",
    { card: SLOW, capture: "manual" },
    201,
    "processing",
    "created processing",
    [],
    [LATE],
  ],
];

function decide(
  body: Record<string, unknown>,
  is_error = true,
  livemode = false,
  urls: PayerUrls = URLS,
) {
  return decideCreate(
    CreatePaymentBody.parse({ amount: 1000, currency: "EUR", ...body }),
    { ...requestContext(livemode), urls, decline_is_error: is_error },
  );
}

for (const [name, body, http, status, events, ledger, operations] of RESULTS) {
  Deno.test(`decideCreate() ${name} → ${http} ${status}`, () => {
    const change = decide({ ...body, reference: "order 7" });
    const summary = summaryOf(change);
    const names = events.split(" ").map((name) => name.includes(".") ? name : `payment.${name}`);
    assert.deepEqual(summary.events, names.map((name, i) => `${i + 1} ${name}`));
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
    assert.equal(change.response.status, http);

    const { body: stored, amount_released, ...row } = change.payment!;
    const shown = JSON.parse(stored);
    assert.equal(shown.status, status);
    for (const [column, value] of Object.entries(row)) {
      assert.deepEqual(shown[column], value, column);
    }
    assert.equal(amount_released ?? 0, 0);
    assert.equal(shown.amount_captured, ledger.includes(CAPTURE) ? 1000 : 0);
    assert.equal(shown.amount_disputed, status === "chargeback" ? 1000 : 0);
    assert.deepEqual([row.sequence, row.created_at], [names.length, NOW]);
    assert.equal(change.events.at(-1)!.object, undefined);
    const returned = JSON.parse(change.response.body);
    assert.deepEqual(http === 402 ? returned.error.payment : returned, shown);
  });
}

/** [card, IBAN or wallet as it is sent, its rail, http, status, failure code, return code] */
const VALUES: [
  value: Record<string, unknown>,
  kind: string,
  http: number,
  status: string,
  failure_code?: string,
  return_code?: string,
][] = [
  [{ card: card("4242-4242-4242-4242") }, "card", 201, "completed"],
  [{ card: card(" 4242 4242-42424242 ") }, "card", 201, "completed"],
  [{ card: card("4 2 4 2 4 2 4 2 4 2 4 2 4 2 4 2") }, "card", 201, "completed"],
  [{ card: { ...card("3782 822463 10005"), cvc: "1234" } }, "card", 201, "completed"],
  [{ card: card("4000 0000 0000 0259") }, "card", 201, "chargeback"],
  [{ card: card("4000-0000-0000-0002") }, "card", 402, "declined", "payment_declined"],
  [{ card: card("4000 0000 0000 9995") }, "card", 402, "declined", "insufficient_funds"],
  [{ card: card("4000-0025-0000-3155") }, "card", 201, "requires_action"],
  [{ card: card("4100 0000 0000 0019") }, "card", 402, "declined", "aml_blocked"],
  [{ iban: "DE89 3704 0044 0532 0130 00" }, "sepa", 201, "completed"],
  [{ iban: { iban: "De89 3704 0044 0532 013000" } }, "sepa", 201, "completed"],
  [{ iban: "DE89370400440532013000", method_kind: "swift" }, "swift", 201, "completed"],
  [{ iban: "de00 0000 0000 0000 0000 99" }, "sepa", 201, "failed", "bank_return", "R01"],
  [{ iban: "gb82 west 1234 5698 7654 32" }, "swift", 201, "completed"],
  [{ iban: "GB82WEST12345698765432", method_kind: "sepa" }, "sepa", 201, "completed"],
  [{ iban: "FR1420041010050500013M02606", currency: "USD" }, "swift", 201, "completed"],
  [{ wallet: ` 0X${WALLET.slice(2, -4)} DEAD ` }, "stablecoin", 201, "completed"],
  [{ wallet: WALLET, currency: "USDT" }, "stablecoin", 201, "completed"],
  ...NETWORKS.map((network): typeof VALUES[number] => [
    { wallet: { address: WALLET, network } },
    "stablecoin",
    201,
    "completed",
  ]),
  [
    { wallet: { address: `${WALLET.slice(0, -4)}0bad`, network: "tron" } },
    "stablecoin",
    201,
    "failed",
    "onchain_reverted",
  ],
];
/** The advice of each decline. */
const ADVICE: Record<string, string> = {
  payment_declined: "use_another_method",
  insufficient_funds: "retry_later",
  aml_blocked: "do_not_retry",
};
for (const [value, kind, http, status, failure_code, return_code] of VALUES) {
  Deno.test(`decideCreate() ${JSON.stringify(value)} → ${http} ${status}`, () => {
    const { payment, response } = decide(value);
    const shown = JSON.parse(payment!.body);
    assert.deepEqual(
      [response.status, shown.method_kind, shown.capability, shown.status],
      [http, kind, `${kind}_payment`, status],
    );
    const advice = ADVICE[failure_code ?? ""] ?? null;
    assert.deepEqual(
      [shown.failure_code, shown.return_code, shown.advice, typeof shown.failure_message],
      [failure_code ?? null, return_code ?? null, advice, failure_code ? "string" : "object"],
    );
    if (http !== 402) return;
    const { error } = JSON.parse(response.body);
    assert.deepEqual([error.code, error.type, error.advice], [failure_code, "payment", advice]);
  });
}

const MEMBERS = "id object status amount amount_minor currency amount_refunded amount_refunding " +
  "amount_captured amount_disputed amount_received capability method_kind method customer payer " +
  "description reference metadata next_action return_url capture capture_before settlement " +
  "failure_code failure_message advice return_code livemode sequence created_at updated_at " +
  "completed_at cancelled_at";
const PERSON = { email: "ada@example.com", name: "Ada" };
const A = { amount: 5, currency: "usd", capability: "card_payment", customer: PERSON };
const B = { amount_minor: 5, currency: "USD", method_kind: "card", payer: PERSON };
const A_AND_B = { amount: 5, amount_minor: 5, currency: "USD", customer: PERSON, payer: PERSON };
const DONE = { status: "completed", sequence: 2, amount_captured: 1000, completed_at: NOW };
const HELD = { status: "authorized", sequence: 2, capture: "manual" };
const ID = { id: "i".repeat(64), email: "a@b.co" };
const LONGEST = { description: "d".repeat(500), reference: "r".repeat(255) };
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
  ["variant A", A, A_AND_B],
  ["variant B", { ...B, amount: undefined }, A_AND_B],
  ["A with method_kind and payer", {
    ...A,
    capability: undefined,
    method_kind: "card",
    customer: undefined,
    payer: PERSON,
  }, A_AND_B],
  ["B with capability and customer", {
    ...B,
    amount: undefined,
    method_kind: undefined,
    capability: "card_payment",
    payer: undefined,
    customer: PERSON,
  }, A_AND_B],
  ["both names of every field", { ...A, ...B }, A_AND_B],
  ["a person without a name, with an id", { customer: ID }, { customer: ID, payer: ID }],
  ["texts", LONGEST, LONGEST],
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
  Deno.test(`decideCreate() shows every member of a payment: ${name}`, () => {
    const shown = JSON.parse(decide(body).payment!.body);
    assert.equal(Object.keys(shown).join(" "), MEMBERS);
    assert.match(shown.id, /^pay_[0-9a-hjkmnp-tv-z]{26}$/);
    const fresh = paymentWith({ sequence: 1, created_at: NOW, updated_at: NOW });
    assert.deepEqual(shown, { ...fresh, ...members, id: shown.id });
  });
}

/** A wallet as it is sent, and how the payment shows it. */
const WALLETS: [body: Record<string, unknown>, network: string, asset: string][] = [
  [{ wallet: WALLET }, "ethereum", "USDC"],
  [{ wallet: WALLET, currency: "usdt" }, "ethereum", "USDT"],
  [{ wallet: { address: WALLET, network: "solana" } }, "solana", "USDC"],
  [{ wallet: { address: WALLET, asset: "USDT" } }, "ethereum", "USDT"],
  [
    {
      wallet: { address: WALLET, network: "base", asset: "USDC" },
      currency: "USDC",
    },
    "base",
    "USDC",
  ],
];
for (const [body, network, asset] of WALLETS) {
  Deno.test(`decideCreate() ${JSON.stringify(body)} shows ${asset} on ${network}`, () => {
    const { method } = JSON.parse(decide(body).payment!.body);
    const { tx_hash, ...wallet } = method.wallet;
    assert.match(tx_hash, /^0x[0-9a-f]{64}$/);
    assert.deepEqual([method.type, wallet], ["stablecoin", { address: WALLET, network, asset }]);
  });
}

Deno.test("decideCreate() returns 201 for a decline if the caller wants no error", () => {
  const change = decide({ card: DECLINED }, false);
  assert.deepEqual([change.response.status, change.response.body], [201, change.payment!.body]);
});

Deno.test("decideCreate() sends the payer to the console's page, if there is a console", () => {
  const actionOf = (urls: PayerUrls) => {
    const change = decide({ card: SECURE }, true, false, urls);
    const payment = JSON.parse(change.payment!.body);
    return { payment, url: payment.next_action.url as string, operations: change.operations };
  };
  const without = actionOf(URLS);
  const operation = `/api-v1-sandbox/payments/${without.payment.id}/authenticate`;
  assert.equal(without.url, URLS.base_url + operation);
  assert.equal(isChallengeUrl(without.url), false);
  assert.deepEqual(without.operations.map(({ op }) => op), ["abandon"]);

  const hosted = actionOf({ ...URLS, console_url: "https://console.example.com/x" });
  const [, token] = /^https:\/\/console\.example\.com\/x\/#\/challenge\/([0-9a-f]{48})$/
    .exec(hosted.url)!;
  assert.ok(isChallengeUrl(hosted.url));
  assert.deepEqual(
    hosted.operations.map(({ op, provider_reference, subject_id }) => [
      op,
      provider_reference,
      subject_id,
    ]),
    [["abandon", null, hosted.payment.id], ["authorize", token, hosted.payment.id]],
  );
});

for (const [token, number] of Object.entries(TEST_TOKENS)) {
  Deno.test(`decideCreate() with ${token} has the result of its card`, () => {
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
    }
  });
}

Deno.test("TEST_TOKENS stand for published test cards", () => {
  const published = TEST_CARDS.map(({ value }) => value);
  assert.deepEqual(Object.values(TEST_TOKENS).filter((value) => !published.includes(value)), []);
});

Deno.test("decideCreate() adds a transaction hash only to a wallet that pays", () => {
  const hashOf = (body: Record<string, unknown>) =>
    JSON.parse(decide({ wallet: WALLET, ...body }).payment!.body).method.wallet.tx_hash;
  assert.match(hashOf({ outcome: "success" }), /^0x[0-9a-f]{64}$/);
  assert.equal(hashOf({ settlement: "manual" }), null);
  assert.equal(hashOf({ wallet: `${WALLET.slice(0, -4)}0BAD` }), null);
  const without = decide({ method_kind: "stablecoin", outcome: "success" });
  assert.equal(JSON.parse(without.payment!.body).method, null);
});

Deno.test("decideCreate() gives every row of a change a unique id", () => {
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
