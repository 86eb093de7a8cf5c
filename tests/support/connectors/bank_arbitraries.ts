/** Random orders to a bank that keep all rules. */

import fc from "fast-check";
import {
  collectionFault,
  type CollectionOrder,
  type OwnBankAccount,
  payoutFault,
  type PayoutOrder,
  type PostalAddress,
  type Remittance,
} from "../../../shared/core/bank_order.ts";
import { remainderOf97 } from "../../../shared/core/iban.ts";
import { MANDATE_SEQUENCES } from "../../../shared/core/vocabulary.ts";
import { saysAnything, toSepaText } from "../../../shared/core/sepa_text.ts";
import { addDays, firstTargetDay } from "../../../shared/core/target_calendar.ts";
import { bankCaseId } from "./bank_case.ts";

const NAMES = [
  "Jürgen Groß",
  "Łukasz & Zoë <Sons>",
  "Γιώργος Θεοδωράκης",
  'Ђорђе "Djole" Ђокић',
  "O’Brien / Partners; Ltd",
  "Ørsted Æbelø A/S",
];

/** Texts that have at most `max` characters after their conversion, and still say something. */
const text = (max: number) =>
  fc.oneof(
    fc.constantFrom(...NAMES),
    fc.string({ unit: "grapheme", minLength: 1, maxLength: max }),
    fc.string({ minLength: 1, maxLength: max }),
  ).filter((text) => saysAnything(toSepaText(text)) && toSepaText(text).length <= max);

const digits = (length: number) =>
  fc.string({ unit: fc.constantFrom(..."0123456789"), minLength: length, maxLength: length });

/** Banks of the EEA, of SEPA outside it, and of other countries. */
const COUNTRIES = { sepa: ["DE", "FR", "IE", "NO", "GB", "CH"], swift: ["DE", "GB", "TR", "BR"] };

const iban = (rail: "sepa" | "swift") =>
  fc.tuple(fc.constantFrom(...COUNTRIES[rail]), digits(18))
    .map(([country, account]) => withCheckDigits(country, account));

const nullable = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: null });

const address: fc.Arbitrary<PostalAddress> = fc.record({
  line1: text(70),
  line2: nullable(text(70)),
  city: text(35),
  postal_code: nullable(digits(5)),
  country: fc.constantFrom("DE", "GB", "CH", "TR"),
});

const party = (rail: "sepa" | "swift") =>
  fc.record({ name: text(70), iban: iban(rail), address, has_bic: fc.boolean() })
    .map(({ has_bic, ...rest }) => ({
      ...rest,
      bic: has_bic ? `BANK${rest.iban.slice(0, 2)}2L` : null,
    }));

const remittance: fc.Arbitrary<Remittance | null> = nullable(fc.oneof(
  text(140).map((text): Remittance => ({ text })),
  digits(16).map((body): Remittance => ({ reference: withCheckDigits("RF", body) })),
));

const date = fc.nat(400).map((days) => addDays("2026-11-27", days));

const shared = { amount_minor: fc.integer({ min: 1, max: 99_999_999_999 }), remittance };

/** Orders of one file, by SEPA. */
export function sepaPayouts(
  account: OwnBankAccount,
): fc.Arbitrary<[PayoutOrder, ...PayoutOrder[]]> {
  return fc.constantFrom("standard" as const, "instant" as const).chain((speed) =>
    some(fc.record({
      ...shared,
      payee: party("sepa"),
      execute_on: date,
      prefix: fc.constantFrom("tr", "re"),
    })).map((orders) =>
      orders.map(({ prefix, ...order }, at) => ({
        ...order,
        ...{ id: bankCaseId(prefix, at), rail: "sepa" as const, currency: account.currency },
        ...{ speed, charges: "SLEV" as const, uetr: null },
      }))
    )
  ).filter(isSound((order) => payoutFault(order, account)));
}

/** Orders of one file, by SWIFT. */
export function swiftPayouts(
  account: OwnBankAccount,
): fc.Arbitrary<[PayoutOrder, ...PayoutOrder[]]> {
  return some(fc.record({
    ...shared,
    payee: party("swift"),
    execute_on: date,
    charges: fc.constantFrom("SHAR" as const, "DEBT" as const, "CRED" as const),
    uetr: fc.uuid({ version: 4 }),
  })).map((orders) =>
    orders.map((order, at) => ({
      ...order,
      ...{ id: bankCaseId("tr", at), rail: "swift" as const, currency: account.currency },
      speed: "standard" as const,
    }))
  ).filter(isSound((order) => payoutFault(order, account)));
}

/** Collections of one file. */
export function collections(
  account: OwnBankAccount,
): fc.Arbitrary<[CollectionOrder, ...CollectionOrder[]]> {
  return some(fc.record({
    ...shared,
    payer: party("sepa"),
    mandate: fc.record({
      id: digits(35),
      signed_on: fc.nat(400).map((days) => addDays("2025-10-01", days)),
      sequence: fc.constantFrom(...MANDATE_SEQUENCES),
    }),
    due_on: date.map((day) => firstTargetDay(addDays(day, 4))),
  })).map((orders) =>
    orders.map((order, at) => ({ ...order, id: bankCaseId("pay", at), currency: "EUR" }))
  ).filter(isSound((order) => collectionFault(order, account)));
}

function some<T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T[]> {
  return fc.array(arbitrary, { minLength: 1, maxLength: 5 });
}

/** Tells whether a list has an order, and only such as keep all rules. */
function isSound<T>(faultOf: (order: T) => unknown): (orders: T[]) => orders is [T, ...T[]] {
  return (orders): orders is [T, ...T[]] =>
    orders.length > 0 && orders.every((order) => faultOf(order) === null);
}

function withCheckDigits(start: string, rest: string): string {
  const check = 98 - remainderOf97(`${rest}${start}00`);
  return start + String(check).padStart(2, "0") + rest;
}
