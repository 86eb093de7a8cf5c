/** Collections: due dates, mandates, payers and amounts that a create takes. */

import assert from "node:assert/strict";
import {
  collectionOf,
  dueDate,
  methodWithMandate,
} from "../../shared/domain/payments/collection.ts";
import { parseBody } from "../../shared/http/parse_input.ts";
import { Mandate, type PaymentMethod } from "../../shared/schema/payment.ts";
import { CreatePaymentBody } from "../../shared/schema/payment.ts";
import { decideCreate, refusalOf, requestContext, URLS } from "../support/domain/decided_change.ts";

const SEPA: PaymentMethod = {
  type: "sepa",
  iban: { country: "DE", last4: "3000" },
  mandate: null,
  due_on: null,
};
const MANDATE = { id: "M-1", signed_at: "2026-01-31", sequence: "recurring" } as const;

const withMandate = (
  mandate: Mandate | undefined,
  at: string,
  { method = SEPA, livemode = false }: { method?: PaymentMethod | null; livemode?: boolean } = {},
) =>
  methodWithMandate(
    method,
    { amount: 1, currency: "EUR", ...(mandate && { mandate }) },
    `pay_${"2".repeat(26)}`,
    { at_ms: Date.parse(at), livemode },
  );

/** [created at, due on, the reason]: 14 days for the notice, then the first TARGET day. */
const DUE: [at: string, due_on: string, reason: string][] = [
  ["2026-11-27T00:00:00Z", "2026-12-11", "a Friday"],
  ["2026-11-27T23:59:59Z", "2026-12-11", "the date in UTC decides"],
  ["2026-11-28T00:00:00Z", "2026-12-14", "a Saturday"],
  ["2026-11-29T12:00:00Z", "2026-12-14", "a Sunday"],
  ["2026-12-11T12:00:00Z", "2026-12-28", "25 December, the 26th, and a Sunday"],
  ["2027-12-18T12:00:00Z", "2028-01-03", "1 January and a weekend"],
  ["2026-03-20T12:00:00Z", "2026-04-07", "Good Friday to Easter Monday"],
  ["2026-04-17T12:00:00Z", "2026-05-04", "1 May and a weekend"],
  ["2028-02-15T12:00:00Z", "2028-02-29", "a leap day"],
];
/** [created at, days of the notice, due on] */
const NOTICES: [at: string, days: number, due_on: string][] = [
  ["2026-11-27T12:00:00Z", 1, "2026-11-30"],
  ["2026-11-27T12:00:00Z", 5, "2026-12-02"],
  ["2026-12-22T12:00:00Z", 3, "2026-12-28"],
  ["2026-11-27T12:00:00Z", 30, "2026-12-28"],
];
for (const [at, days, due_on] of NOTICES) {
  Deno.test(`dueDate() of ${at} with ${days} days is ${due_on}`, () => {
    assert.equal(dueDate(Date.parse(at), days), due_on);
  });
}

for (const [at, due_on, reason] of DUE) {
  Deno.test(`methodWithMandate() of ${at} is due on ${due_on}: ${reason}`, () => {
    const method = withMandate(MANDATE, at);
    assert.deepEqual(collectionOf({ method }), { ...SEPA, mandate: MANDATE, due_on });
  });
}

const NOW = "2026-01-31T09:00:00Z";
/** [name, mandate, method, live, refusal] */
const REFUSED: [string, Mandate | undefined, PaymentMethod | null, boolean, string][] = [
  ["of SWIFT", MANDATE, { ...SEPA, type: "swift" }, false, "mandate"],
  ["without an instrument", MANDATE, null, false, "mandate"],
  ["live collection without", undefined, SEPA, true, "mandate"],
  [
    "signed a second later",
    { ...MANDATE, signed_at: "2026-01-31T09:00:01Z" },
    SEPA,
    false,
    "mandate.signed_at",
  ],
  [
    "signed in a hundred years",
    { ...MANDATE, signed_at: "2126-01-01" },
    SEPA,
    false,
    "mandate.signed_at",
  ],
  ["signed tomorrow", { ...MANDATE, signed_at: "2026-02-01" }, SEPA, false, "mandate.signed_at"],
  [
    "signed in an hour, in another time zone",
    { ...MANDATE, signed_at: "2026-01-31T09:00:00-01:00" },
    SEPA,
    false,
    "mandate.signed_at",
  ],
];
for (const [name, mandate, method, livemode, param] of REFUSED) {
  Deno.test(`methodWithMandate() mandate ${name} is refused`, () => {
    const refusal = refusalOf(() => withMandate(mandate, NOW, { method, livemode }));
    assert.equal(refusal, `invalid_parameter ${param}`);
  });
}

for (const method of [null, SEPA, { ...SEPA, type: "swift" as const }]) {
  Deno.test(`methodWithMandate() without a mandate ${method?.type ?? "nothing"} stays`, () => {
    assert.equal(withMandate(undefined, NOW, { method }), method);
  });
}
Deno.test("methodWithMandate() of a live create has no due date: the account decides it", () => {
  const method = withMandate(MANDATE, NOW, { livemode: true });
  assert.equal(collectionOf({ method }).due_on, null);
});
Deno.test("methodWithMandate() mandate signed today, now, or in a time zone ahead", () => {
  for (const signed_at of ["2026-01-31", NOW, "2026-01-31T10:00:00+01:00"]) {
    const method = withMandate({ ...MANDATE, signed_at }, NOW, { livemode: true });
    assert.equal(collectionOf({ method }).mandate?.signed_at, signed_at);
  }
});

/** [name, members, is valid] */
const FORMS: [string, Record<string, unknown>, boolean][] = [
  ["as it is", {}, true],
  ["every character", { id: "aZ09+?:().,' -/x" }, true],
  ["35 characters", { id: "a".repeat(35) }, true],
  ["36 characters", { id: "a".repeat(36) }, false],
  ["no character", { id: "" }, false],
  ["a space first", { id: " a" }, false],
  ["a slash first", { id: "/a" }, false],
  ["an umlaut", { id: "Müller" }, false],
  ["a line break", { id: "a\n" }, false],
  ["no time zone", { signed_at: "2026-01-31T09:00:00" }, false],
  ["no day", { signed_at: "2026-01" }, false],
  ["a time before the year 1", { signed_at: "0000-01-01T00:00:00Z" }, false],
  ["a date before the year 1", { signed_at: "0000-12-31" }, false],
  ["the first date", { signed_at: "0001-01-01" }, true],
  ["30 February", { signed_at: "2026-02-30" }, false],
  ["a number", { signed_at: 1_769_000_000 }, false],
  ["another sequence", { sequence: "FRST" }, false],
  ["no sequence", { sequence: undefined }, false],
];
for (const [name, members, is_valid] of FORMS) {
  Deno.test(`Mandate with ${name}: ${is_valid ? "taken" : "refused"}`, () => {
    assert.equal(Mandate.safeParse({ ...MANDATE, ...members }).success, is_valid);
  });
}

const CARD = { number: "4242424242424242", exp_month: 12, exp_year: 2034, cvc: "123" };
const LIMIT = 99_999_999_999;
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
  ["a card", { card: CARD }, 999_999_999_999],
];
for (const [name, body, largest] of AMOUNTS) {
  Deno.test(`decideCreate() amount by ${name}: at most ${largest}`, () => {
    decide({ ...body, amount: largest });
    if (largest > LIMIT) return;
    for (const livemode of [false, true]) {
      const over = { ...body, ...(livemode && { outcome: undefined }) };
      const refused = (amount: Record<string, unknown>) =>
        refusalOf(() => decide({ ...over, ...amount }, livemode));
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
  ["from Switzerland with a long line", {
    iban: "CH9300762011623852957",
    address: { city: "Bern", country: "CH", line1: "x".repeat(71) },
  }, "iban.address.line1"],
  ["from Switzerland", { iban: "CH9300762011623852957" }, "iban.address"],
  ["from Monaco", { iban: "MC5811222000010123456789030" }, "iban.address"],
  ["by SWIFT", { iban: BRITISH }, null, { method_kind: "swift", mandate: undefined }],
];
for (const [name, iban, param, more] of PAYERS) {
  Deno.test(`decideCreate() collection ${name}: ${param ?? "taken"}`, () => {
    const body = { method_kind: "sepa", mandate: MANDATE, ...more };
    const refused = (livemode: boolean) =>
      refusalOf(() => decide({ ...body, iban: { holder_name: "Ada", ...iban } }, livemode));
    const expected = param === null ? "none" : `invalid_parameter ${param}`;
    assert.deepEqual([refused(false), refused(true)], [expected, expected]);
  });
}
Deno.test("decideCreate() collection shows no name and no address", () => {
  const iban = { iban: BRITISH, holder_name: "Ada", address: LONDON };
  const { body } = decide({ method_kind: "sepa", mandate: MANDATE, iban }).payment!;
  assert.doesNotMatch(body, /Ada|London/);
});
Deno.test("decideCreate() collection from a test IBAN needs no address with a test key", () => {
  const body = { method_kind: "sepa", mandate: MANDATE };
  const iban = { iban: "GB82WEST12345698765432", holder_name: "Ada" };
  decide({ ...body, iban });
  assert.equal(
    refusalOf(() => decide({ ...body, iban }, true)),
    "invalid_parameter iban.address",
  );
});

const SANDBOX_IBAN = "DE09 0000 0000 0000 0000 01";
/** Bodies with a mandate: the refused field, or the status and the day on which it is due. */
const BODIES: [string, Record<string, unknown>, end: string | [string, string]][] = [
  ["a collection", { iban: SEPA_IBAN }, ["processing", "2026-02-17"]],
  ["an outcome", { iban: SEPA_IBAN, outcome: "success" }, ["completed", "2026-02-17"]],
  ["a declined outcome", { iban: SEPA_IBAN, outcome: "declined" }, ["declined", "2026-02-17"]],
  ["manual settlement", { iban: SEPA_IBAN, settlement: "manual" }, ["pending", "2026-02-17"]],
  ["no IBAN", { method_kind: "sepa" }, "mandate"],
  ["no instrument", { outcome: "success" }, "mandate"],
  ["a card", { card: CARD }, "mandate"],
  ["SWIFT", { iban: "GB82WEST12345698765432" }, "mandate"],
  ["the account of the sandbox", { iban: SANDBOX_IBAN }, "iban.iban"],
  ["no id", { iban: SEPA_IBAN, mandate: { ...MANDATE, id: undefined } }, "mandate.id"],
  ["a text as mandate", { iban: SEPA_IBAN, mandate: "M-1" }, "mandate"],
];
for (const [name, body, end] of BODIES) {
  Deno.test(`the body of a collection with ${name}: ${end}`, () => {
    const create = () => decide({ mandate: MANDATE, ...body });
    if (typeof end === "string") {
      return assert.equal(refusalOf(create), `invalid_parameter ${end}`);
    }
    const { status, method } = JSON.parse(create().payment!.body);
    assert.deepEqual([status, method.due_on], end);
  });
}

function decide(body: Record<string, unknown>, livemode = false) {
  const read = { value: { amount: 1000, currency: "EUR", ...body }, literals: new Map() };
  return decideCreate(
    parseBody(CreatePaymentBody, { ...read, value: JSON.parse(JSON.stringify(read.value)) }),
    { ...requestContext(livemode), urls: URLS, decline_is_error: true },
  );
}
