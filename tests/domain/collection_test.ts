/** Collections: due dates, mandates, payers and amounts that a create takes. */

import assert from "node:assert/strict";
import {
  collectionOf,
  dueDate,
  methodWithMandate,
} from "../../shared/domain/payments/collection.ts";
import { parseBody } from "../../shared/http/parse_input.ts";
import { CreatePaymentBody, Mandate } from "../../shared/schema/payment_body.ts";
import { type PaymentMethod } from "../../shared/schema/payment.ts";
import { paymentOf } from "../../shared/domain/payments/create_payment.ts";
import { decided, refusalOf, requestContext } from "../support/domain/decided_change.ts";
import { readBody } from "../support/http/read_body.ts";

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

/** [created at, due on]: 14 days for the notice, then the first TARGET day. */
const DUE: [at: string, due_on: string][] = [
  ["2026-11-27T23:59:59Z", "2026-12-11"], // the date in UTC decides
  ["2026-11-28T00:00:00Z", "2026-12-14"],
  ["2026-12-11T12:00:00Z", "2026-12-28"],
  ["2028-02-15T12:00:00Z", "2028-02-29"],
];
for (const [at, due_on] of DUE) {
  Deno.test(`methodWithMandate() of ${at} is due on ${due_on}`, () => {
    const method = withMandate(MANDATE, at);
    assert.deepEqual(collectionOf({ method }), { ...SEPA, mandate: MANDATE, due_on });
  });
}
Deno.test("dueDate() counts the days of the notice", () => {
  const dates = [1, 5, 30].map((days) => dueDate(Date.parse("2026-11-27T12:00:00Z"), days));
  assert.deepEqual(dates, ["2026-11-30", "2026-12-02", "2026-12-28"]);
  assert.equal(dueDate(Date.parse("2026-12-22T12:00:00Z"), 3), "2026-12-28");
});

const NOW = "2026-01-31T09:00:00Z";
const signed = (signed_at: string) => ({ ...MANDATE, signed_at });
/** [mandate, method, live, refusal] */
const REFUSED: [Mandate | undefined, PaymentMethod | null, boolean, string][] = [
  [MANDATE, { ...SEPA, type: "swift" }, false, "mandate"],
  [MANDATE, null, false, "mandate"],
  [undefined, SEPA, true, "mandate"],
  [signed("2026-01-31T09:00:01Z"), SEPA, false, "mandate.signed_at"],
  [signed("2026-02-01"), SEPA, false, "mandate.signed_at"],
  [signed("2126-01-01"), SEPA, false, "mandate.signed_at"],
  [signed("2026-01-31T09:00:00-01:00"), SEPA, false, "mandate.signed_at"],
];
for (const [mandate, method, livemode, param] of REFUSED) {
  const name = `${JSON.stringify(mandate)} by ${method?.type}`;
  Deno.test(`methodWithMandate() refuses ${name}${livemode ? " live" : ""}: ${param}`, () => {
    const refusal = refusalOf(() => withMandate(mandate, NOW, { method, livemode }));
    assert.equal(refusal, `invalid_parameter ${param}`);
  });
}

Deno.test("methodWithMandate() without a mandate changes nothing", () => {
  for (const method of [null, SEPA, { ...SEPA, type: "swift" as const }]) {
    assert.equal(withMandate(undefined, NOW, { method }), method);
  }
});
Deno.test("methodWithMandate() takes a mandate signed until now, and no due date with a live key", () => {
  for (const signed_at of ["2026-01-31", NOW, "2026-01-31T10:00:00+01:00"]) {
    // The account decides the due date of a live collection.
    const method = withMandate(signed(signed_at), NOW, { livemode: true });
    const { mandate, due_on } = collectionOf({ method });
    assert.deepEqual([mandate?.signed_at, due_on], [signed_at, null]);
  }
});

/** [is valid, members of a mandate] */
const FORMS: [is_valid: boolean, ...members: Record<string, unknown>[]][] = [
  [true, {}, { id: "aZ09+?:().,' -/x" }, { id: "a".repeat(35) }, { signed_at: "0001-01-01" }],
  [false, ...["a".repeat(36), "", " a", "/a", "Müller", "a\n"].map((id) => ({ id }))],
  [false, ...["2026-01-31T09:00:00", "2026-01", "2026-02-30"].map((signed_at) => ({ signed_at }))],
  [false, { signed_at: "0000-01-01T00:00:00Z" }, { signed_at: "0000-12-31" }],
  [false, { signed_at: 1_769_000_000 }, { sequence: "FRST" }, { sequence: undefined }],
];
for (const [is_valid, ...forms] of FORMS) {
  for (const members of forms) {
    Deno.test(`Mandate ${is_valid ? "takes" : "refuses"} ${Deno.inspect(members)}`, () => {
      assert.equal(Mandate.safeParse({ ...MANDATE, ...members }).success, is_valid);
    });
  }
}

const CARD = { number: "4242424242424242", exp_month: 12, exp_year: 2034, cvc: "123" };
const LIMIT = 99_999_999_999;
const SEPA_IBAN = "NL91ABNA0417164300";
/** [body beside the amount, largest amount] */
const AMOUNTS: [body: Record<string, unknown>, largest: number][] = [
  [{ iban: { iban: SEPA_IBAN, holder_name: "Ada" }, mandate: MANDATE }, LIMIT],
  [{ method_kind: "sepa" }, LIMIT],
  [{ method_kind: "sepa", outcome: "success" }, LIMIT],
  [{ iban: SEPA_IBAN, method_kind: "swift" }, 999_999_999_999],
  [{ card: CARD }, 999_999_999_999],
];
for (const [body, largest] of AMOUNTS) {
  Deno.test(`paymentOf() ${JSON.stringify(body)} has at most the amount ${largest}`, () => {
    decide({ ...body, amount: largest });
    if (largest > LIMIT) return;
    for (const livemode of [false, true]) {
      const over = { ...body, ...(livemode && { outcome: undefined }) };
      for (const amount of ["amount", "amount_minor"]) {
        const more = { ...over, amount: undefined, [amount]: largest + 1 };
        assert.equal(refusalOf(() => decide(more, livemode)), `invalid_parameter ${amount}`);
      }
    }
  });
}

const LONDON = { city: "London", country: "GB" };
const BRITISH = "GB29NWBK60161331926819";
const SWISS = "CH9300762011623852957";
/** [account of the payer, refused field or null, body] */
const PAYERS: [Record<string, unknown>, string | null, Record<string, unknown>?][] = [
  [{ iban: SEPA_IBAN }, null],
  [{ iban: BRITISH }, "iban.address"],
  [{ iban: BRITISH, address: LONDON }, null],
  [{ iban: SWISS, address: { ...LONDON, line1: "x".repeat(71) } }, "iban.address.line1"],
  [{ iban: SWISS }, "iban.address"],
  [{ iban: "MC5811222000010123456789030" }, "iban.address"],
  [{ iban: BRITISH }, null, { method_kind: "swift", mandate: undefined }],
];
const COLLECT = { method_kind: "sepa", mandate: MANDATE };
for (const [iban, param, more] of PAYERS) {
  Deno.test(`paymentOf() collection from ${JSON.stringify(iban)}: ${param ?? "taken"}`, () => {
    const body = { ...COLLECT, ...more, iban: { holder_name: "Ada", ...iban } };
    const expected = param === null ? "none" : `invalid_parameter ${param}`;
    const refused = [false, true].map((livemode) => refusalOf(() => decide(body, livemode)));
    assert.deepEqual(refused, [expected, expected]);
  });
}
Deno.test("paymentOf() collection shows no name and no address", () => {
  const iban = { iban: BRITISH, holder_name: "Ada", address: LONDON };
  assert.doesNotMatch(decide({ ...COLLECT, iban }).payment!.body, /Ada|London/);
});
Deno.test("paymentOf() collection from a test IBAN needs no address with a test key", () => {
  const body = { ...COLLECT, iban: { iban: "GB82WEST12345698765432", holder_name: "Ada" } };
  decide(body);
  assert.equal(refusalOf(() => decide(body, true)), "invalid_parameter iban.address");
});

const SANDBOX_IBAN = "DE09 0000 0000 0000 0000 01";
/** Bodies with a mandate: the refused field, or the status with the day on which it is due. */
const BODIES: [body: Record<string, unknown>, end: string][] = [
  [{ iban: SEPA_IBAN }, "processing 2026-02-17"],
  [{ iban: SEPA_IBAN, outcome: "success" }, "completed 2026-02-17"],
  [{ iban: SEPA_IBAN, outcome: "declined" }, "declined 2026-02-17"],
  [{ iban: SEPA_IBAN, settlement: "manual" }, "pending 2026-02-17"],
  [{ method_kind: "sepa" }, "mandate"],
  [{ outcome: "success" }, "mandate"],
  [{ card: CARD }, "mandate"],
  [{ iban: "GB82WEST12345698765432" }, "mandate"],
  [{ iban: SANDBOX_IBAN }, "iban.iban"],
  [{ iban: SEPA_IBAN, mandate: { ...MANDATE, id: undefined } }, "mandate.id"],
  [{ iban: SEPA_IBAN, mandate: "M-1" }, "mandate"],
];
for (const [body, end] of BODIES) {
  Deno.test(`the body of a collection with ${JSON.stringify(body)}: ${end}`, () => {
    const create = () => decide({ mandate: MANDATE, ...body });
    if (!end.includes(" ")) return assert.equal(refusalOf(create), `invalid_parameter ${end}`);
    const { status, method } = JSON.parse(create().payment!.body);
    assert.equal(`${status} ${method.due_on}`, end);
  });
}

function decide(body: Record<string, unknown>, livemode = false) {
  const read = readBody({ amount: 1000, currency: "EUR", ...body }, CreatePaymentBody);
  return decided(paymentOf(parseBody(CreatePaymentBody, read), true, requestContext(livemode)));
}
