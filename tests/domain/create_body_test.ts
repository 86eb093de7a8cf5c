/**
 * The body of a create, from its JSON text to the decision: the accepted and the refused values of
 * each field, and the field that a refusal names (contract §2).
 */

import assert from "node:assert/strict";
import { asSent, parseBody } from "../../shared/http/parse_input.ts";
import { parseBytes } from "../../shared/http/request_body.ts";
import { readInstrument } from "../../shared/domain/providers/instrument.ts";
import { MAX_RETURN_URL } from "../../shared/schema/limits.ts";
import { CreatePaymentBody, type Payment } from "../../shared/schema/payment.ts";
import {
  decideCreate,
  NOW_MS,
  refusalOf,
  requestContext,
  URLS,
} from "../support/domain/decided_change.ts";

const JSON_HEADERS = new Headers({ "Content-Type": "application/json" });

interface Sending {
  livemode?: boolean;
  at_ms?: number;
}

/** Decides a create, as a route does. A text is sent as it is, members in a body of 1000 EUR cents. */
function send(
  body: string | Record<string, unknown>,
  { livemode = false, at_ms = NOW_MS }: Sending = {},
): Payment {
  const text = typeof body === "string"
    ? body
    : JSON.stringify({ amount: 1000, currency: "EUR", ...body });
  const read = parseBytes(new TextEncoder().encode(text), JSON_HEADERS);
  try {
    const context = { ...requestContext(livemode), at_ms };
    const options = { ...context, urls: URLS, decline_is_error: true };
    return JSON.parse(decideCreate(parseBody(CreatePaymentBody, read), options).payment!.body);
  } catch (error) {
    throw asSent(error, read);
  }
}

/** Registers a test for each body: the field that its refusal names, or null if it is accepted. */
function testBodies(
  cases: readonly [string, string | Record<string, unknown>, string | null, Sending?][],
): void {
  for (const [name, body, param, options] of cases) {
    Deno.test(`the body of a create: ${name} → ${param ?? "accepted"}`, () => {
      const expected = param === null ? "none" : `invalid_parameter ${param}`;
      assert.equal(refusalOf(() => send(body, options)), expected);
    });
  }
}

/** Texts of an amount, and whether the amount is accepted. */
const AMOUNTS: [is_taken: boolean, literals: string[]][] = [
  [true, ["1", "1000", "999999999999", " 7 "]],
  [false, ["1000000000000", "9007199254740991", "0", "-0", "-1", "1.0", "1.5", "0.1", "1000.00"]],
  [false, ["1e3", "1E3", "10e-1", '"100"', '""', "null", "true", "[100]", "{}"]],
];
for (const field of ["amount", "amount_minor"]) {
  for (const [is_taken, literals] of AMOUNTS) {
    testBodies(literals.map((literal) => [
      `${field}: ${literal}`,
      `{"${field}":${literal},"currency":"EUR"}`,
      is_taken ? null : field,
    ]));
  }
}
testBodies(
  ([
    ['"amount":5,"amount_minor":5', null],
    ['"amount":5,"amount_minor":6', "amount_minor"],
    ['"amount_minor":5,"amount":6', "amount_minor"],
    ['"amount":5,"amount_minor":5.0', "amount_minor"],
    ['"amount":5,"amount_minor":null', "amount_minor"],
    ['"description":"none"', "amount"],
  ] as const).map(([members, param]) => [members, `{"currency":"EUR",${members}}`, param]),
);

const SEPA = { iban: "DE89 3704 0044 0532 0130 00" };
const SWIFT = { iban: "GB82 WEST 1234 5698 7654 32" };
const ADDRESS = "0x000000000000000000000000000000000000dEaD";
const CHECKSUM = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";
/** An address with digits that look like a card number. */
const LIKE_A_CARD = "0xd2eeb04b97e7ff96777176145884a48430a039f9";
const STABLECOIN = { wallet: ADDRESS };
const CARD = { number: "4242 4242 4242 4242", exp_month: 12, exp_year: 2034, cvc: "123" };
const card = (members: Record<string, unknown> = {}) => ({ card: { ...CARD, ...members } });
const wallet = (members: Record<string, unknown>) => ({ wallet: { address: ADDRESS, ...members } });
const entries = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`key_${i}`, `${i}`]));
const customer = { email: "a@b.co" };

/** Accepted fields, and the members of the payment that show them. */
const TAKEN: [string, Record<string, unknown>, Record<string, unknown>][] = [
  ["currency in lower case", { currency: "eur" }, { currency: "EUR" }],
  ["currency in mixed case", { currency: "uSd" }, { currency: "USD" }],
  ["currency without decimals", { currency: "JPY" }, { currency: "JPY" }],
  ["a stablecoin currency", { currency: "usdc", method_kind: "stablecoin" }, { currency: "USDC" }],
  ["both kinds agreeing", { capability: "sepa_payment", method_kind: "sepa" }, {
    method_kind: "sepa",
  }],
  ["kind agreeing with the card", { ...card(), method_kind: "card" }, { method_kind: "card" }],
  ["kind agreeing with the wallet", { ...STABLECOIN, capability: "stablecoin_payment" }, {
    method_kind: "stablecoin",
  }],
  ["the same person twice", { customer, payer: customer }, { payer: customer }],
  ["metadata of 50 entries", { metadata: entries(50) }, { metadata: entries(50) }],
  ["a metadata key of 40", { metadata: { ["k".repeat(40)]: "v" } }, {}],
  ["a metadata value of 500", { metadata: { k: "v".repeat(500) } }, {}],
  ["an empty metadata value", { metadata: { k: "" } }, { metadata: { k: "" } }],
  ["metadata named as Object's members", { metadata: { constructor: "a", toString: "b" } }, {
    metadata: { constructor: "a", toString: "b" },
  }],
  ["a description of 500 characters beyond the BMP", { description: "\u{1f600}".repeat(500) }, {}],
  ["an empty description", { description: "" }, { description: "" }],
  ["automatic capture of an IBAN", { ...SEPA, capture: "automatic" }, { status: "completed" }],
  ["manual capture without an instrument", { capture: "manual" }, { status: "pending" }],
  ["the expired card with an outcome", {
    ...card({ number: "4000000000000069" }),
    outcome: "success",
  }, {
    status: "completed",
  }],
  ["an outcome over a token", {
    card: { token: "pm_card_chargeDeclined" },
    outcome: "success",
  }, { status: "completed" }],
];
for (const [name, body, shown] of TAKEN) {
  Deno.test(`the body of a create: ${name} is accepted`, () => {
    const payment = send(body);
    assert.deepEqual({ ...payment, ...shown }, payment);
  });
}

testBodies([
  ["no currency", { currency: undefined }, "currency"],
  ["an unknown currency", { currency: "ABC" }, "currency"],
  ["an unknown currency without an amount", { amount: undefined, currency: "ABC" }, "currency"],
  ["a long currency without an amount", { amount: undefined, currency: "x".repeat(9) }, "currency"],
  ["a currency of four letters", { currency: "EURO" }, "currency"],
  ["an empty currency", { currency: "" }, "currency"],
  ["a currency with a space", { currency: "EUR " }, "currency"],
  ["a currency as a number", { currency: 978 }, "currency"],
  ["a long s in the currency", { currency: "u\u017fd" }, "currency"],
  ["SEPA in dollars", { method_kind: "sepa", currency: "USD" }, "currency"],
  ["the same with its IBAN", { ...SEPA, method_kind: "sepa", currency: "USD" }, "currency"],
  ["SEPA in pounds", { method_kind: "sepa", currency: "GBP" }, "currency"],
  ["a card in USDC", { ...card(), currency: "USDC" }, "currency"],
  ["a card in USDT", { ...card(), currency: "USDT" }, "currency"],
  ["SWIFT in USDT", { ...SWIFT, currency: "USDT" }, "currency"],
  ["USDC without a kind", { currency: "USDC" }, "currency"],
  ["an unknown capability", { capability: "card" }, "capability"],
  ["an unknown kind", { method_kind: "card_payment" }, "method_kind"],
  ["kinds that differ", { capability: "card_payment", method_kind: "sepa" }, "method_kind"],
  ["capability against the card", { ...card(), capability: "sepa_payment" }, "capability"],
  ["capability against the wallet", { ...STABLECOIN, capability: "card_payment" }, "capability"],
  ["kind against the card", { ...card(), method_kind: "swift" }, "method_kind"],
  ["kind against the IBAN", { ...SEPA, method_kind: "card" }, "method_kind"],
  ["kind against the wallet", { ...STABLECOIN, method_kind: "sepa" }, "method_kind"],
  ["a card and an IBAN", { ...card(), ...SEPA }, "iban"],
  ["a card and a wallet", { ...card(), ...STABLECOIN }, "wallet"],
  ["an IBAN and a wallet", { ...SEPA, ...STABLECOIN }, "wallet"],
  ["three instruments", { ...card(), ...SWIFT, ...STABLECOIN }, "iban"],
  ["persons that differ", { customer, payer: { email: "c@b.co" } }, "payer"],
  ["names that differ", {
    customer: { ...customer, name: "A" },
    payer: { ...customer, name: "B" },
  }, "payer"],
  ["ids that differ", {
    customer: { ...customer, id: "a" },
    payer: { ...customer, id: "b" },
  }, "payer"],
  ["an id in one of the two", { customer: { ...customer, id: "a" }, payer: customer }, "payer"],
  ["an empty id", { customer: { ...customer, id: "" } }, "customer.id"],
  ["an id of 65 characters", { payer: { ...customer, id: "u".repeat(65) } }, "payer.id"],
  ["an id that is a number", { customer: { ...customer, id: 7 } }, "customer.id"],
  ["an id without an address", { customer: { id: "u1" } }, "customer.email"],
  ["no address", { customer: { name: "A" } }, "customer.email"],
  ["a bad address", { customer: { email: "nobody" } }, "customer.email"],
  ["a bad address of a payer", { payer: { email: "a@b" } }, "payer.email"],
  ["a person as text", { customer: "a@b.co" }, "customer"],
  ["a description of 501 beyond the BMP", {
    description: "\u{1f600}".repeat(501),
  }, "description"],
  ["a description of 501", { description: "d".repeat(501) }, "description"],
  ["a reference of 256", { reference: "r".repeat(256) }, "reference"],
  ["a reference as a number", { reference: 7 }, "reference"],
  ["metadata of 51 entries", { metadata: entries(51) }, "metadata"],
  ["a metadata key of 41", { metadata: { ["k".repeat(41)]: "v" } }, `metadata.${"k".repeat(41)}`],
  ["a metadata value of 501", { metadata: { k: "v".repeat(501) } }, "metadata.k"],
  ["a metadata value as a number", { metadata: { k: 1 } }, "metadata.k"],
  ["a nested metadata value", { metadata: { k: { a: "b" } } }, "metadata.k"],
  ["metadata as an array", { metadata: ["a"] }, "metadata"],
  ["an unknown outcome", { outcome: "completed" }, "outcome"],
  ["an unknown settlement", { settlement: "later" }, "settlement"],
  ["an unknown capture", { capture: "later" }, "capture"],
  ["manual capture of an IBAN", { ...SEPA, capture: "manual" }, "capture"],
  ["manual capture of a wallet", { ...STABLECOIN, capture: "manual" }, "capture"],
  ["manual capture by swift", { method_kind: "swift", capture: "manual" }, "capture"],
  ["manual capture of a refund", { capture: "manual", outcome: "refunded" }, "capture"],
  ["manual capture of a chargeback", {
    ...card(),
    capture: "manual",
    outcome: "chargeback",
  }, "capture"],
  ["an IBAN with a wrong check digit", { iban: "DE88370400440532013000" }, "iban"],
  ["the same as an object", { iban: { iban: "DE88370400440532013000" } }, "iban.iban"],
  ["a bad BIC", { iban: { iban: SEPA.iban, bic: "X" } }, "iban.bic"],
  ["an IBAN as a number", { iban: 89 }, "iban"],
  ["a wallet with a wrong checksum", { wallet: CHECKSUM.replace("Aed", "AeD") }, "wallet"],
  ["the same as an object", wallet({ address: CHECKSUM.replace("Aed", "AeD") }), "wallet.address"],
  ["an address for tron", wallet({ address: CHECKSUM, network: "tron" }), "wallet.address"],
  ["an address for solana", wallet({ address: CHECKSUM, network: "solana" }), "wallet.address"],
  ["an address like a card number", { wallet: LIKE_A_CARD }, null],
  ["a card number in a wallet", { wallet: "4539578763621486-1234567" }, "wallet"],
  ["a text with a card number", { wallet: "4539 5787 6362 1486 is mine" }, "wallet"],
  ["an unknown network", wallet({ network: "bitcoin" }), "wallet.network"],
  ["an unknown asset", wallet({ asset: "DAI" }), "wallet.asset"],
  [
    "an asset against the currency",
    { ...wallet({ asset: "USDT" }), currency: "USDC" },
    "wallet.asset",
  ],
]);

/** Bodies that only a live key is refused, and those that it can send. */
testBodies(
  ([
    ["outcome", { outcome: "success" }, "outcome"],
    ["outcome pending", { outcome: "pending" }, "outcome"],
    ["settlement manual", { ...SWIFT, settlement: "manual" }, "settlement"],
    ["settlement instant", { ...SWIFT, settlement: "instant" }, "settlement"],
    ["a test card", card(), "card.number"],
    ["another card", card({ number: "4111 1111 1111 1111" }), "card.number"],
    ["a return URL on localhost", { return_url: "http://localhost:3000/return" }, "return_url"],
    ["a return URL on 127.0.0.1", { return_url: "http://127.0.0.1/" }, "return_url"],
    ["a return URL on [::1]", { return_url: "http://[::1]/" }, "return_url"],
    ["a wallet", { ...STABLECOIN, currency: "USDC" }, "wallet"],
    ["a stablecoin in euros", { method_kind: "stablecoin" }, "currency"],
    ["a test IBAN", SWIFT, null],
  ] as const).map(([name, body, param]) => [`${name} (live)`, body, param, { livemode: true }]),
);

Deno.test("readInstrument() leaves the token of a live card to the provider", () => {
  for (const token of ["pm_1NxYz", "pm_card_visa"]) {
    const body = CreatePaymentBody.parse({ amount: 1, currency: "EUR", card: { token } });
    assert.deepEqual(readInstrument(body, true, NOW_MS), {
      kind: "card",
      method: null,
      behaviour: null,
      token,
    });
  }
});

/** Card numbers that are refused. No message repeats one. */
const NUMBERS: [string, number: unknown][] = [
  ["a valid number that is no test card", "4111 1111 1111 1111"],
  ["another", "4012-8888-8888-1881"],
  ["a test card with a wrong last digit", "4242 4242 4242 4241"],
  ["a test card with a digit more", "4242 4242 4242 4242 4"],
  ["a test card cut short", "4242 4242 4242 424"],
  ["other separators", "4242.4242.4242.4242"],
  ["full-width digits", "４２４２４２４２４２４２４２４２"],
  ["letters", "four two four two"],
  ["nothing", ""],
  ["a JSON number", 4242424242424242],
];
testBodies(NUMBERS.map(([name, number]) => [name, card({ number }), "card.number"]));
Deno.test("the body of a create: no message repeats a refused card number", () => {
  for (const [name, number] of NUMBERS.filter(([, number]) => number !== "")) {
    const digits = String(number).replace(/\D/g, "") || "none";
    assert.throws(() => send(card({ number })), (error: Error) => {
      // The message names a published number, which has the first digits of some of these numbers.
      const told = `${error.message} ${JSON.stringify(error)}`
        .replaceAll("such as 4242 4242 4242 4242", "").replaceAll('"4242 4242 4242 4242"', "");
      assert.ok(!told.includes(String(number)) && !told.includes(digits), `${name}: ${told}`);
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
for (const [number, taken, refused] of CVCS) {
  const named = (cvc: unknown) => `${number} with the CVC ${JSON.stringify(cvc)}`;
  testBodies([
    ...taken.map((cvc) => [named(cvc), card({ number, cvc }), null] as const),
    ...refused.map((cvc) => [named(cvc), card({ number, cvc }), "card.cvc"] as const),
  ].map(([name, body, param]) => [name, body, param]));
}

/** A card is valid until the last millisecond (UTC) of its month. */
const EXPIRIES: [month: unknown, year: unknown, at: string, refused: string | null][] = [
  [11, 2026, "2026-11-20T12:00:00.000Z", null],
  [11, 2026, "2026-11-30T23:59:59.999Z", null],
  [11, 2026, "2026-12-01T00:00:00.000Z", "card.exp_month"],
  [12, 2026, "2026-12-31T23:59:59.999Z", null],
  [12, 2026, "2027-01-01T00:00:00.000Z", "card.exp_year"],
  [2, 2028, "2028-02-29T23:59:59.999Z", null],
  [2, 2028, "2028-03-01T00:00:00.000Z", "card.exp_month"],
  [10, 2026, "2026-11-01T00:00:00.000Z", "card.exp_month"],
  [12, 2025, "2026-01-01T00:00:00.000Z", "card.exp_year"],
  [1, 2027, "2026-12-31T23:59:59.999Z", null],
  [0, 2030, "2026-11-20T12:00:00.000Z", "card.exp_month"],
  [13, 2030, "2026-11-20T12:00:00.000Z", "card.exp_month"],
  [1.5, 2030, "2026-11-20T12:00:00.000Z", "card.exp_month"],
  ["12", 2030, "2026-11-20T12:00:00.000Z", "card.exp_month"],
  [12, 30, "2026-11-20T12:00:00.000Z", "card.exp_year"],
  [12, "2030", "2026-11-20T12:00:00.000Z", "card.exp_year"],
  [12, undefined, "2026-11-20T12:00:00.000Z", "card.exp_year"],
];
testBodies(EXPIRIES.map(([exp_month, exp_year, at, refused]) => [
  `a card until ${exp_month}/${exp_year} at ${at}`,
  card({ exp_month, exp_year }),
  refused,
  { at_ms: Date.parse(at) },
]));
testBodies([
  ...["4000 0000 0000 0069", "4000000000000069", "4000-0000-0000-0069"].map((
    number,
  ): [string, Record<string, unknown>, string] => [number, card({ number }), "card.exp_year"]),
  [
    "12.0 as a month",
    '{"amount":1,"currency":"EUR","card":{"number":"4242424242424242","exp_month":12.0,' +
    '"exp_year":2034,"cvc":"123"}}',
    "card.exp_month",
  ],
  ...["", "10115", "SW1A 1AA", "00000"].map((
    postal_code,
  ): [string, Record<string, unknown>, null] => [
    `the postal code "${postal_code}"`,
    card({ postal_code }),
    null,
  ]),
]);

const TOKEN_HINT = "must be a test token, such as pm_card_visa";
/** Refused cards: the field at fault, and a part of the message. */
const CARDS: [string, card: unknown, param: string, message?: string][] = [
  ["an unknown token", { token: "pm_1PxNowTwo3Four5" }, "card.token", TOKEN_HINT],
  ["a token with the name of a member", { token: "pm_constructor" }, "card.token", TOKEN_HINT],
  ["a test token in other case", { token: "pm_card_Visa" }, "card.token", TOKEN_HINT],
  ["another prefix", { token: "tok_visa" }, "card.token"],
  ["the prefix alone", { token: "pm_" }, "card.token"],
  ["a space after a token", { token: "pm_card_visa " }, "card.token"],
  ["a space in a token", { token: "pm_card visa" }, "card.token"],
  ["a token of 254 characters", { token: `pm_${"x".repeat(251)}` }, "card.token"],
  ["an empty token", { token: "" }, "card.token"],
  ["null as token", { token: null }, "card.token"],
  ["a number as token", { token: 4242 }, "card.token"],
  ["a card number as token", { token: "4242424242424242" }, "card.token"],
  ["a token and a card", { token: "pm_card_visa", ...CARD }, "card.token", "leave"],
  ["a token and a number", { token: "pm_card_visa", number: CARD.number }, "card.token", "leave"],
  ["a token and a CVC", { token: "pm_card_visa", cvc: "123" }, "card.token", "leave"],
  ["a token and a postal code", { token: "pm_card_visa", postal_code: "10115" }, "card.token"],
  ["an empty object", {}, "card.number", "is required"],
  ["an unknown member beside a token", { token: "pm_card_visa", brand: "visa" }, "card.brand"],
  ["a postal code only", { postal_code: "10115" }, "card.number", "is required"],
  ...(["number", "exp_month", "exp_year", "cvc"] as const).map((name): typeof CARDS[number] => [
    `no ${name}`,
    { ...CARD, [name]: undefined },
    `card.${name}`,
    `"card.${name}" is required`,
  ]),
  ["no expiry", { number: CARD.number, cvc: "123" }, "card.exp_month", "is required"],
  ["a list", [], "card", '"token"'],
  ["text", "pm_card_visa", "card", '"token"'],
  ["null", null, "card", '"token"'],
];
for (const [name, card, param, message = ""] of CARDS) {
  Deno.test(`the body of a create: ${name} as card → ${param}`, () => {
    assert.throws(() => send({ card }), (error: Error & { details: { param: string } }) => {
      assert.equal(error.details.param, param);
      assert.ok(error.message.includes(message), error.message);
      return true;
    });
  });
}

const SHOP = "https://shop.example/return";
const LONGEST = `${SHOP}?x=${"y".repeat(MAX_RETURN_URL - SHOP.length - 3)}`;
/** Return URLs, which are kept in the form that a browser reads. */
const RETURN_URLS: [string, url: string, stored?: string][] = [
  ["https", SHOP],
  ["a query and a fragment", `${SHOP}?order=1001&lang=en#paid`],
  ["a port", "https://shop.example:8443/"],
  ["http on localhost", "http://localhost:3000/return"],
  ["http on 127.0.0.1", "http://127.0.0.1/return"],
  ["http on [::1]", "http://[::1]:3000/return"],
  ["https on localhost", "https://localhost/return"],
  [`${MAX_RETURN_URL} characters`, LONGEST],
  ["no path", "https://shop.example", "https://shop.example/"],
  ["upper case", "HTTPS://Shop.Example/Return", "https://shop.example/Return"],
  ["spaces around it", ` ${SHOP}\n`, SHOP],
  ["a line break in it", "https://shop.example/\nreturn", SHOP],
  ["a tab in the scheme", "ht\ttps://shop.example/return", SHOP],
  ["backslashes", "https:\\\\shop.example\\return", SHOP],
  ["no slashes", "https:shop.example/return", SHOP],
  ["a path with dots", "https://shop.example/a/../return", SHOP],
  ["quotes and spaces", 'https://shop.example/a b"<>', "https://shop.example/a%20b%22%3C%3E"],
  ["letters outside ASCII", "https://käse.example/ü", "https://xn--kse-qla.example/%C3%BC"],
  ["the port of the scheme", "https://shop.example:443/return", SHOP],
];
for (const [name, return_url, stored = return_url] of RETURN_URLS) {
  Deno.test(`the body of a create: ${name} as return_url is kept`, () => {
    assert.equal(send({ return_url }).return_url, stored);
  });
}
testBodies(
  ([
    ["http elsewhere", "http://shop.example/return"],
    ["http on a name that begins with localhost", "http://localhost.shop.example/"],
    ["http on a private address", "http://192.168.0.1/"],
    ["a user name", "https://ada@shop.example/return"],
    ["a user name and a password", "https://ada:secret@shop.example/return"],
    ["a password alone", "https://:secret@shop.example/"],
    ["a password on localhost", "http://:secret@localhost/return"],
    ["javascript:", "javascript:alert(1)"],
    ["data:", "data:text/html,hello"],
    ["an app's own scheme", "shop://return"],
    ["no scheme", "shop.example/return"],
    ["no host", "https://"],
    ["a path", "/return"],
    ["an empty text", ""],
    [`${MAX_RETURN_URL + 1} characters`, `${LONGEST}y`],
    [`${MAX_RETURN_URL + 1} characters in its normal form`, LONGEST.replace(/yyy$/, "éy")],
    ["a number", 5],
    ["null", null],
    ["a list", [SHOP]],
  ] as const).map((
    [name, return_url],
  ) => [`${name} as return_url`, { return_url }, "return_url"]),
);
Deno.test("the body of a create: no message repeats a password of a return_url", () => {
  const return_url = "https://ada:secret@shop.example/return";
  assert.throws(() => send({ return_url }), (error: Error) => !error.message.includes("secret"));
});
