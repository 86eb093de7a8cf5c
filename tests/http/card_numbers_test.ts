/**
 * Card numbers in fields that take none: each place of a body refuses a valid number, and the error
 * does not repeat it. core/card_number_test.ts has numbers and spellings,
 * domain/create_body_test.ts `card.number`, and logs_test.ts headers, paths, queries, logs and
 * tables.
 */

import assert from "node:assert/strict";
import type * as z from "zod";
import { ApiError } from "../../shared/core/errors.ts";
import { parseBody } from "../../shared/http/parse_input.ts";
import { CapturePaymentBody, CreatePaymentBody } from "../../shared/schema/payment_body.ts";
import { CreateRefundBody } from "../../shared/schema/refund_body.ts";
import { CreateWebhookEndpointBody } from "../../shared/schema/webhook_body.ts";
import { readBody } from "../support/http/read_body.ts";

/** A valid number that is no test card. */
const NUMBER = "4539578763621486";
const GOOD = { amount: 1000, currency: "EUR" };
const IBAN = "DE89370400440532013000";
const CARD = { number: "4242424242424242", exp_month: 12, exp_year: 2034, cvc: "123" };

/** Returns a value with a number, by its spelling or by its digits. */
type Place = (written: string, digits: string) => unknown;

/** Places of the number in each field of a create, without `card.number`. */
const FIELDS: Record<keyof z.infer<typeof CreatePaymentBody>, Place[]> = {
  amount: [(_, digits) => Number(digits)],
  amount_minor: [(_, digits) => Number(digits)],
  currency: [(n) => n],
  capability: [(n) => n],
  method_kind: [(n) => n],
  customer: [
    (n) => ({ email: "a@b.example", name: `Mr ${n}` }),
    (n) => ({ id: n, email: "a@b.example" }),
    (n) => ({ email: `${n}@b.example` }),
  ],
  payer: [(n) => ({ email: `a@${n}.example` })],
  card: [
    (n) => n,
    (_, digits) => ({ ...CARD, number: Number(digits) }),
    (n) => ({ ...CARD, cvc: n }),
    (n) => ({ ...CARD, postal_code: n }),
    (n) => ({ ...CARD, pan: n }),
    (n) => ({ token: `pm_${n}` }),
  ],
  iban: [(n) => n, (n) => ({ iban: n }), (n) => ({ iban: IBAN, holder_name: n })],
  mandate: [(n) => ({ id: n, signed_at: "2026-01-31", sequence: "one_off" })],
  wallet: [(n) => n, (n) => ({ address: n })],
  description: [(n) => `paid with ${n}`, (n) => `${n} 123`],
  reference: [(n) => n],
  metadata: [(n) => ({ order: n }), (n) => ({ [n]: "1" })],
  capture: [(n) => n],
  return_url: [(n) => `https://shop.example/${n}`],
  outcome: [(n) => n],
  settlement: [(n) => n],
  instrument: [(n) => n],
  save: [(n) => n],
  off_session: [(n) => n],
};
/** Places of the number in the body of a create. */
const PLACES: Place[] = [
  ...Object.entries(FIELDS).flatMap(([field, places]) =>
    places.map((place): Place => (...number) => ({ [field]: place(...number) }))
  ),
  (n) => ({ note: n }),
  (n) => ({ [n]: 1 }),
  (n) => ({ note: [{ a: [[{ b: n }]] }] }),
  (n) => ({ note: [{ a: { [n]: null } }] }),
  (_, digits) => ({ note: Number(digits) }),
];

/** Spellings of the number. */
const WRITINGS: ((number: string) => string)[] = [
  (n) => n,
  (n) => n.replace(/(\d{4})(?=\d)/g, "$1 "),
  (n) => n.replace(/(\d{4})(?=\d)/g, "$1%2520"),
  (n) => n.replace(/\d/g, "%3$&"),
  (n) => n.replace(/\d/g, (digit) => String.fromCodePoint(0xff10 + Number(digit))),
];
const SCHEMAS = [
  CreatePaymentBody,
  CreateWebhookEndpointBody,
  CreateRefundBody,
  CapturePaymentBody,
];

for (const place of PLACES) {
  Deno.test(`parseBody() refuses a card number in ${JSON.stringify(place("…", "0"))}`, () => {
    for (const [schema, write] of SCHEMAS.flatMap((s) => WRITINGS.map((w) => [s, w] as const))) {
      const sent = { ...GOOD, ...place(write(NUMBER), NUMBER) as Record<string, unknown> };
      assert.throws(
        () => parseBody<unknown>(schema, readBody(sent, schema)),
        (error: Error) => {
          assert.ok(error instanceof ApiError, error.message);
          assert.ok(["invalid_parameter", "invalid_json"].includes(error.code), error.message);
          const told = `${error.message} ${JSON.stringify(error.details)}`;
          for (const text of [NUMBER, write(NUMBER)]) assert.ok(!told.includes(text), told);
          return true;
        },
        JSON.stringify(sent),
      );
    }
  });
}
