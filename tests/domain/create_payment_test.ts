/**
 * The decision of a create with a test key: rows, events, movements, operations and response for
 * every result of the sandbox's provider.
 */

import assert from "node:assert/strict";
import { isChallengeUrl, type PayerUrls } from "../../shared/sandbox/challenge_url.ts";
import { TEST_CARDS, TEST_TOKENS } from "../../shared/domain/providers/test_values.ts";
import { CreatePaymentBody } from "../../shared/schema/payment.ts";
import {
  decideCreate,
  NOW,
  NOW_MS,
  refusalOf,
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

const LIMIT = 99_999_999_999;
const MANDATE = { id: "M1", signed_at: "2026-01-31", sequence: "recurring" };
const SEPA_IBAN = "NL91ABNA0417164300";
/** [the rail of the payment, body beside the amount, largest amount] */
const AMOUNTS: [string, Record<string, unknown>, number][] = [
  [
    "SEPA under a mandate",
    { iban: { iban: SEPA_IBAN, holder_name: "Ada" }, mandate: MANDATE },
    LIMIT,
  ],
  ["SEPA by the payer", { method_kind: "sepa" }, LIMIT],
  ["SEPA with an outcome", { method_kind: "sepa", outcome: "success" }, LIMIT],
  ["SWIFT", { iban: SEPA_IBAN, method_kind: "swift" }, 999_999_999_999],
  ["a card", { card: APPROVED }, 999_999_999_999],
];
for (const [name, body, largest] of AMOUNTS) {
  Deno.test(`decideCreate() amount by ${name}: at most ${largest}`, () => {
    decide({ ...body, amount: largest });
    if (largest > LIMIT) return;
    for (const livemode of [false, true]) {
      const over = { ...body, ...(livemode && { outcome: undefined }) };
      const refused = (amount: Record<string, unknown>) =>
        refusalOf(() => decide({ ...over, ...amount }, true, livemode));
      assert.equal(refused({ amount: largest + 1 }), "invalid_parameter amount");
      assert.equal(
        refused({ amount: undefined, amount_minor: largest + 1 }),
        "invalid_parameter amount_minor",
      );
    }
  });
}

const LONDON = { city: "London", country: "GB" };
const BRITISH = "GB29NWBK60161331926819";
/** [name, account of the payer, refused field or null, body] */
const PAYERS: [string, Record<string, unknown>, string | null, Record<string, unknown>?][] = [
  ["from the EEA", { iban: SEPA_IBAN }, null],
  ["from Britain without an address", { iban: BRITISH }, "iban.address"],
  ["from Britain with one", { iban: BRITISH, address: LONDON }, null],
  ["from Switzerland", { iban: "CH9300762011623852957" }, "iban.address"],
  ["from Monaco", { iban: "MC5811222000010123456789030" }, "iban.address"],
  ["by SWIFT", { iban: BRITISH }, null, { method_kind: "swift", mandate: undefined }],
];
for (const [name, iban, param, more] of PAYERS) {
  Deno.test(`decideCreate() collection ${name}: ${param ?? "taken"}`, () => {
    const body = { method_kind: "sepa", mandate: MANDATE, ...more };
    const refused = (livemode: boolean) =>
      refusalOf(() => decide({ ...body, iban: { holder_name: "Ada", ...iban } }, true, livemode));
    const expected = param === null ? "none" : `invalid_parameter ${param}`;
    assert.deepEqual([refused(false), refused(true)], [expected, expected]);
  });
}
Deno.test("decideCreate() collection from a test IBAN needs no address with a test key", () => {
  const body = { method_kind: "sepa", mandate: MANDATE };
  const iban = { iban: "GB82WEST12345698765432", holder_name: "Ada" };
  decide({ ...body, iban });
  assert.equal(
    refusalOf(() => decide({ ...body, iban }, true, true)),
    "invalid_parameter iban.address",
  );
});

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

Deno.test("decideCreate() stores the members of the request, or their defaults", () => {
  const shown = (body: Record<string, unknown>) => {
    const { capture, capture_before, settlement, return_url, amount_received } = JSON.parse(
      decide(body).payment!.body,
    );
    return { capture, capture_before, settlement, return_url, amount_received };
  };
  assert.deepEqual(shown({}), {
    capture: "automatic",
    capture_before: null,
    settlement: "instant",
    return_url: null,
    amount_received: null,
  });
  const return_url = "http://localhost:3000/back";
  assert.deepEqual(
    shown({ card: APPROVED, capture: "manual", settlement: "manual", return_url }),
    {
      capture: "manual",
      capture_before: new Date(NOW_MS + 7 * DAY_MS).toISOString(),
      settlement: "manual",
      return_url,
      amount_received: null,
    },
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

Deno.test("decideCreate() adds a transaction hash only to a wallet", () => {
  const by_wallet = decide({ wallet: WALLET, outcome: "success" });
  assert.match(JSON.parse(by_wallet.payment!.body).method.wallet.tx_hash, /^0x[0-9a-f]{64}$/);
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

/** A part of the body that the service refuses with a test key, and the field that it names. */
const REFUSED: [body: Record<string, unknown>, param: string, livemode?: true][] = [
  [{ card: card("4000000000000069") }, "card.exp_year"],
  [{ card: card("4111111111111111") }, "card.number"],
  [{ card: { token: "pm_card_nobody" } }, "card.token"],
  [{ card: { token: "pm_constructor" } }, "card.token"],
  [{ method_kind: "sepa", currency: "USD" }, "currency"],
  [{ customer: { email: "a@b.co" }, payer: { email: "c@d.co" } }, "payer"],
  [{ customer: { id: "a", email: "a@b.co" }, payer: { email: "a@b.co" } }, "payer"],
  [{ capture: "manual", iban: "DE89370400440532013000" }, "capture"],
  [{ capture: "manual", wallet: WALLET }, "capture"],
  [{ capture: "manual", method_kind: "swift" }, "capture"],
  [{ capture: "manual", outcome: "refunded" }, "capture"],
  [{ capture: "manual", outcome: "chargeback", card: APPROVED }, "capture"],
  [{ return_url: "http://localhost/back" }, "return_url", true],
  [{ settlement: "manual" }, "settlement", true],
  [{ outcome: "success" }, "outcome", true],
  [{ card: APPROVED }, "card.number", true],
];

for (const [body, param, livemode] of REFUSED) {
  const mode = livemode ? "a live key" : "a test key";
  Deno.test(`decideCreate() refuses ${JSON.stringify(body)} with ${mode}: ${param}`, () => {
    assert.equal(refusalOf(() => decide(body, true, livemode)), `invalid_parameter ${param}`);
  });
}

/** The id with a later ordinal. Its last character is a base-32 digit. */
function ordinal(id: string, more: number): string {
  const characters = "0123456789abcdefghjkmnpqrstvwxyz";
  return id.slice(0, -1) + characters[characters.indexOf(id.at(-1)!) + more];
}
