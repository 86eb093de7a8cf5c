/**
 * The body of a create, from its JSON text to the decision: the accepted and the refused values of
 * each field, and the field that a refusal names (contract §2).
 */

import assert from "node:assert/strict";
import { asSent, parseBody } from "../../shared/http/parse_input.ts";
import { readInstrument } from "../../shared/domain/providers/instrument.ts";
import { MAX_RETURN_URL } from "../../shared/schema/limits.ts";
import { CreatePaymentBody } from "../../shared/schema/payment_body.ts";
import { type Payment } from "../../shared/schema/payment.ts";
import { paymentOf } from "../../shared/domain/payments/create_payment.ts";
import { decided, NOW_MS, requestContext } from "../support/domain/decided_change.ts";
import { type SentBody, testBodies } from "../support/domain/move_case.ts";
import { readBody } from "../support/http/read_body.ts";

interface Sending {
  livemode?: boolean;
  at_ms?: number;
}

/** Decides a create, as a route does. A text is sent as is, members in a body of 1000 EUR cents. */
function send(body: SentBody, { livemode = false, at_ms = NOW_MS }: Sending = {}): Payment {
  const sent = typeof body === "string" ? body : { amount: 1000, currency: "EUR", ...body };
  const read = readBody(sent, CreatePaymentBody);
  try {
    const context = { ...requestContext(livemode), at_ms };
    const begun = paymentOf(parseBody(CreatePaymentBody, read), true, context);
    return JSON.parse(decided(begun).payment!.body);
  } catch (error) {
    throw asSent(error, read);
  }
}

/** Registers a test for each body: the field that its refusal names, or null if it is accepted. */
const test = (rows: Parameters<typeof testBodies>[1], options: Sending = {}) =>
  testBodies(`a create ${JSON.stringify(options)}`, rows, (body) => send(body, options));

/** Refused values of a field, or of the object whose member is at fault. */
const refused = (param: string, ...values: unknown[]): [string, ...SentBody[]] => [
  param,
  ...values.map((value) => ({ [param.split(".")[0]!]: value })),
];

const LITERALS: [is_taken: boolean, literals: string[]][] = [
  [true, ["1", "1000", "999999999999", " 7 "]],
  [false, ["1000000000000", "9007199254740991", "0", "-0", "-1", "1.0", "1.5", "0.1", "1000.00"]],
  [false, ["1e3", "1E3", "10e-1", '"100"', '""', "null", "true", "[100]", "{}", '{"toString":1}']],
];
const euros = (members: string) => `{"currency":"EUR",${members}}`;
test([
  ...["amount", "amount_minor"].flatMap((field) =>
    LITERALS.map(([is_taken, literals]) =>
      [
        is_taken ? null : field,
        ...literals.map((literal) => euros(`"${field}":${literal}`)),
      ] as const
    )
  ),
  [null, euros('"amount":5,"amount_minor":5')],
  ["amount_minor", euros('"amount":5,"amount_minor":6'), euros('"amount_minor":5,"amount":6')],
  ["amount_minor", euros('"amount":5,"amount_minor":5.0'), euros('"amount":5,"amount_minor":null')],
  ["amount", euros('"description":"none"')],
]);

const SEPA = { iban: "DE89 3704 0044 0532 0130 00" };
const SWIFT = { iban: "GB82 WEST 1234 5698 7654 32" };
const ADDRESS = "0x000000000000000000000000000000000000dEaD";
const CHECKSUM = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";
const WRONG_CHECKSUM = CHECKSUM.replace("Aed", "AeD");
/** An address with digits that look like a card number. */
const LIKE_A_CARD = "0xd2eeb04b97e7ff96777176145884a48430a039f9";
const STABLECOIN = { wallet: ADDRESS };
const CARD = { number: "4242 4242 4242 4242", exp_month: 12, exp_year: 2034, cvc: "123" };
const card = (members: Record<string, unknown> = {}) => ({ card: { ...CARD, ...members } });
const entries = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`key_${i}`, `${i}`]));
const customer = { email: "a@b.co" };

/** Accepted fields, and the members of the payment that show them. */
const TAKEN: [body: Record<string, unknown>, shown: Record<string, unknown>][] = [
  [{ currency: "uSd" }, { currency: "USD" }],
  [{ currency: "JPY" }, { currency: "JPY" }],
  [{ currency: "usdc", method_kind: "stablecoin" }, { currency: "USDC" }],
  [{ capability: "sepa_payment", method_kind: "sepa" }, { method_kind: "sepa" }],
  [{ ...card(), method_kind: "card" }, { method_kind: "card" }],
  [{ ...STABLECOIN, capability: "stablecoin_payment" }, { method_kind: "stablecoin" }],
  [{ customer, payer: customer }, { payer: customer }],
  [{ customer: { email: "jörg@bücher.example" } }, {}],
  [{ customer: { email: "用户@例子.广告" } }, {}],
  [{ metadata: entries(50) }, { metadata: entries(50) }],
  [{ metadata: { ["k".repeat(40)]: "v", k: "v".repeat(500) } }, {}],
  [{ metadata: { k: "" }, description: "" }, { metadata: { k: "" }, description: "" }],
  [{ metadata: { constructor: "a", toString: "b" } }, {
    metadata: { constructor: "a", toString: "b" },
  }],
  [{ description: "\u{1f600}".repeat(500) }, {}],
  [{ ...SEPA, capture: "automatic" }, { status: "completed" }],
  [{ capture: "manual" }, { status: "pending" }],
  [{ ...card({ number: "4000000000000069" }), outcome: "success" }, { status: "completed" }],
  [{ card: { token: "pm_card_chargeDeclined" }, outcome: "success" }, { status: "completed" }],
];
for (const [body, shown] of TAKEN) {
  Deno.test(`the body of a create: ${JSON.stringify(body).slice(0, 90)} is accepted`, () => {
    const payment = send(body);
    assert.deepEqual({ ...payment, ...shown }, payment);
  });
}

test([
  refused("currency", undefined, "ABC", "EURO", "", "EUR ", 978, "u\u017fd", "USDC"),
  // An unknown currency is told before a missing amount.
  ["currency", ...["ABC", "x".repeat(9)].map((currency) => ({ amount: undefined, currency }))],
  ["currency", ...["USD", "GBP"].map((currency) => ({ method_kind: "sepa", currency }))],
  ["currency", { ...SEPA, method_kind: "sepa", currency: "USD" }, { ...SWIFT, currency: "USDT" }],
  ["currency", { ...card(), currency: "USDC" }, { ...card(), currency: "USDT" }],
  refused("capability", "card"),
  ["capability", { ...card(), capability: "sepa_payment" }],
  ["capability", { ...STABLECOIN, capability: "card_payment" }],
  refused("method_kind", "card_payment"),
  ["method_kind", { capability: "card_payment", method_kind: "sepa" }],
  ["method_kind", { ...card(), method_kind: "swift" }, { ...SEPA, method_kind: "card" }],
  ["method_kind", { ...STABLECOIN, method_kind: "sepa" }],
  ["iban", { ...card(), ...SEPA }, { ...card(), ...SWIFT, ...STABLECOIN }],
  ["wallet", { ...card(), ...STABLECOIN }, { ...SEPA, ...STABLECOIN }],
  ["payer", { customer, payer: { email: "c@b.co" } }],
  ["payer", { customer: { ...customer, name: "A" }, payer: { ...customer, name: "B" } }],
  ["payer", { customer: { ...customer, id: "a" }, payer: { ...customer, id: "b" } }],
  ["payer", { customer: { ...customer, id: "a" }, payer: customer }],
  refused("customer", "a@b.co"),
  refused("customer.id", { ...customer, id: "" }, { ...customer, id: 7 }),
  refused("payer.id", { ...customer, id: "u".repeat(65) }),
  refused("customer.email", { id: "u1" }, { name: "A" }, { email: "nobody" }),
  refused("payer.email", { email: "a@b" }, { email: "a..b@c.co" }, { email: "a b@c.co" }),
  refused("description", "d".repeat(501), "\u{1f600}".repeat(501)),
  refused("reference", "r".repeat(256), 7),
  refused("metadata", entries(51), ["a"]),
  refused(`metadata.${"k".repeat(41)}`, { ["k".repeat(41)]: "v" }),
  refused("metadata.k", { k: "v".repeat(501) }, { k: 1 }, { k: { a: "b" } }),
  refused("outcome", "completed"),
  refused("settlement", "later"),
  refused("capture", "later"),
  [
    "capture",
    ...[SEPA, STABLECOIN, { method_kind: "swift" }, { outcome: "refunded" }].map((
      body,
    ) => ({ ...body, capture: "manual" })),
  ],
  ["capture", { ...card(), capture: "manual", outcome: "chargeback" }],
  refused("iban", "DE88370400440532013000", 89),
  refused("iban.iban", { iban: "DE88370400440532013000" }),
  refused("iban.bic", { iban: SEPA.iban, bic: "X" }),
  refused(
    "wallet",
    `0x${"0".repeat(40)}`,
    WRONG_CHECKSUM,
    "4539578763621486-1234567",
    "4539 5787 6362 1486 is mine",
  ),
  refused("wallet.address", { address: WRONG_CHECKSUM }, { address: CHECKSUM, network: "tron" }),
  refused("wallet.address", { address: CHECKSUM, network: "solana" }),
  [null, { wallet: LIKE_A_CARD }],
  refused("wallet.network", { address: ADDRESS, network: "bitcoin" }),
  refused("wallet.asset", { address: ADDRESS, asset: "DAI" }),
  ["wallet.asset", { wallet: { address: ADDRESS, asset: "USDT" }, currency: "USDC" }],
]);

/** Bodies that only a live key is refused, and one that it can send. */
test([
  refused("outcome", "success", "pending"),
  ["settlement", ...["manual", "instant"].map((settlement) => ({ ...SWIFT, settlement }))],
  ["card.number", card(), card({ number: "4111 1111 1111 1111" })],
  refused("return_url", "http://localhost:3000/return", "http://127.0.0.1/", "http://[::1]/"),
  ["wallet", { ...STABLECOIN, currency: "USDC" }],
  ["currency", { method_kind: "stablecoin" }],
  [null, SWIFT],
], { livemode: true });

Deno.test("readInstrument() leaves the token of a live card to the provider", () => {
  for (const token of ["pm_1NxYz", "pm_card_visa"]) {
    const body = CreatePaymentBody.parse({ amount: 1, currency: "EUR", card: { token } });
    const instrument = { kind: "card", method: null, behaviour: null, token };
    assert.deepEqual(readInstrument(body, true, NOW_MS), instrument);
  }
});

/**
 * Card numbers that are refused, and no message repeats one: valid ones that are no test card, a
 * test card with a wrong digit, with one more and cut short, other separators and digits.
 */
const NUMBERS: unknown[] = [
  ...["4111 1111 1111 1111", "4012-8888-8888-1881", "4242 4242 4242 4241", "4242 4242 4242 4242 4"],
  ...[
    "4242 4242 4242 424",
    "4242.4242.4242.4242",
    "４２４２４２４２４２４２４２４２",
    "four two four two",
  ],
  ...["", 4242424242424242],
];
test([["card.number", ...NUMBERS.map((number) => card({ number }))]]);
Deno.test("the body of a create: no message repeats a refused card number", () => {
  for (const number of NUMBERS.filter((number) => number !== "")) {
    const digits = String(number).replace(/\D/g, "") || "none";
    assert.throws(() => send(card({ number })), (error: Error) => {
      // The message names a published number, which has the first digits of some of these numbers.
      const told = `${error.message} ${JSON.stringify(error)}`
        .replaceAll("such as 4242 4242 4242 4242", "").replaceAll('"4242 4242 4242 4242"', "");
      assert.ok(!told.includes(String(number)) && !told.includes(digits), told);
      return true;
    });
  }
  for (const number of ["4242 4242 4242 4242", "4111 1111 1111 1111", "5555-5555-5555-4444"]) {
    assert.throws(() => send(card({ number }), { livemode: true }), (error: Error) => {
      assert.match(error.message, /"card\.token"/);
      return !error.message.includes(number);
    });
  }
});

/** Security codes of a card: those that are accepted, and those that are refused. */
const CVCS: [number: string, taken: unknown[], refused: unknown[]][] = [
  ["4242 4242 4242 4242", ["000", "999"], [
    ...["1234", "12", "", "12a", " 123", "١٢٣", 123, null, undefined],
  ]],
  ["4000 0000 0000 0002", [], ["12"]],
  ["3782 822463 10005", ["1234", "123"], ["12345"]],
];
test(CVCS.flatMap(([number, taken, refused]) => [
  [null, ...taken.map((cvc) => card({ number, cvc }))] as const,
  ["card.cvc", ...refused.map((cvc) => card({ number, cvc }))] as const,
]));

/** A card is valid until the last millisecond (UTC) of its month. */
const EXPIRIES: [
  at: string,
  refused: string | null,
  ...cards: [month: unknown, year: unknown][],
][] = [
  ["2026-11-20T12:00:00.000Z", null, [11, 2026]],
  ["2026-11-30T23:59:59.999Z", null, [11, 2026]],
  ["2026-12-01T00:00:00.000Z", "card.exp_month", [11, 2026]],
  ["2026-12-31T23:59:59.999Z", null, [12, 2026], [1, 2027]],
  ["2027-01-01T00:00:00.000Z", "card.exp_year", [12, 2026]],
  ["2028-02-29T23:59:59.999Z", null, [2, 2028]],
  ["2028-03-01T00:00:00.000Z", "card.exp_month", [2, 2028]],
  ["2026-11-01T00:00:00.000Z", "card.exp_month", [10, 2026]],
  ["2026-01-01T00:00:00.000Z", "card.exp_year", [12, 2025]],
  ["2026-11-20T12:00:00.000Z", "card.exp_month", [0, 2030], [13, 2030], [1.5, 2030], ["12", 2030]],
  ["2026-11-20T12:00:00.000Z", "card.exp_year", [12, 30], [12, "2030"], [12, undefined]],
];
for (const [at, refused, ...cards] of EXPIRIES) {
  const bodies = cards.map(([exp_month, exp_year]) => card({ exp_month, exp_year }));
  test([[refused, ...bodies]], { at_ms: Date.parse(at) });
}
test([
  [
    "card.exp_year",
    ...["4000 0000 0000 0069", "4000000000000069"].map((number) => card({ number })),
  ],
  [
    "card.exp_month",
    JSON.stringify({ amount: 1, currency: "EUR", ...card() }).replace("12", "12.0"),
  ],
  [null, ...["", "10115", "SW1A 1AA", "00000"].map((postal_code) => card({ postal_code }))],
]);

/** Refused cards. */
const CARDS: [param: string, ...cards: unknown[]][] = [
  [
    "card.token",
    ...["pm_1PxNowTwo3Four5", "pm_constructor", "pm_card_Visa", "4242424242424242", "tok_visa"]
      .concat("pm_", "pm_card_visa ", "pm_card visa", `pm_${"x".repeat(251)}`, "")
      .map((token) => ({ token })),
    ...[null, 4242].map((token) => ({ token })),
    ...[CARD, { number: CARD.number }, { cvc: "123" }, { postal_code: "10115" }].map((more) => ({
      token: "pm_card_visa",
      ...more,
    })),
  ],
  ["card.brand", { token: "pm_card_visa", brand: "visa" }],
  ["card.number", {}, { postal_code: "10115" }],
  ["card.exp_month", { number: CARD.number, cvc: "123" }],
  ...["number", "exp_month", "exp_year", "cvc"].map((name): typeof CARDS[number] => [
    `card.${name}`,
    { ...CARD, [name]: undefined },
  ]),
  ["card", [], "pm_card_visa", null],
];
test(CARDS.map(([param, ...cards]) => [param, ...cards.map((card) => ({ card }))]));

const SHOP = "https://shop.example/return";
const LONGEST = `${SHOP}?x=${"y".repeat(MAX_RETURN_URL - SHOP.length - 3)}`;
/** Return URLs that are kept as they are. */
const RETURN_URLS = [
  ...[SHOP, LONGEST, `${SHOP}?order=1001&lang=en#paid`, "https://shop.example:8443/"],
  ...["http://localhost:3000/return", "http://127.0.0.1/return", "http://[::1]:3000/return"],
  "https://localhost/return",
];
/** Return URLs in the form that a browser reads. */
const NORMALIZED: Record<string, string> = {
  ...Object.fromEntries(RETURN_URLS.map((url) => [url, url])),
  "https://shop.example": "https://shop.example/",
  "HTTPS://Shop.Example/Return": "https://shop.example/Return",
  [` ${SHOP}\n`]: SHOP,
  "https://shop.example/\nreturn": SHOP,
  "ht\ttps://shop.example/return": SHOP,
  "https:\\\\shop.example\\return": SHOP,
  "https:shop.example/return": SHOP,
  "https://shop.example/a/../return": SHOP,
  "https://shop.example:443/return": SHOP,
  'https://shop.example/a b"<>': "https://shop.example/a%20b%22%3C%3E",
  "https://käse.example/ü": "https://xn--kse-qla.example/%C3%BC",
};
for (const [return_url, stored] of Object.entries(NORMALIZED)) {
  Deno.test(`the body of a create: the return_url ${JSON.stringify(return_url).slice(0, 90)}`, () => {
    assert.equal(send({ return_url }).return_url, stored);
  });
}
test([
  refused(
    "return_url",
    ...["http://shop.example/return", "http://localhost.shop.example/", "http://192.168.0.1/"],
    ...["https://ada@shop.example/return", "https://ada:secret@shop.example/return"],
    ...["https://:secret@shop.example/", "http://:secret@localhost/return"],
    ...["javascript:alert(1)", "data:text/html,hello", "shop://return", "shop.example/return"],
    // The limit is for the normal form, in which "é" has six characters.
    ...["https://", "/return", "", `${LONGEST}y`, LONGEST.replace(/yyy$/, "éy"), 5, null, [SHOP]],
  ),
]);
Deno.test("the body of a create: no message repeats a password of a return_url", () => {
  const return_url = "https://ada:secret@shop.example/return";
  assert.throws(() => send({ return_url }), (error: Error) => !error.message.includes("secret"));
});
