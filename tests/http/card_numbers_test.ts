/**
 * Card numbers in fields that take none. A thousand valid numbers, each in some field of some
 * route, are refused, and the database, the logs and the responses hold no trace of them.
 * logs_test.ts has headers, paths and queries.
 */

import assert from "node:assert/strict";
import fc from "fast-check";
import { containsCardNumber } from "../../shared/core/card_number.ts";
import { testCard } from "../../shared/domain/providers/test_values.ts";
import type { CreatePaymentBody } from "../../shared/schema/payment_body.ts";
import { APPROVED_CARD } from "../support/service/service.ts";
import { ENDPOINTS } from "../support/webhook/recording_receiver.ts";
import { CODES } from "../support/core/error_codes.ts";
import { PAYMENTS, SANDBOX, serviceCase } from "../support/service/service_case.ts";
import { dumpTables } from "../support/database/table_dump.ts";

const NUMBERS = 1_000;
/** An arbitrary seed. fast-check prints it with a failure. */
const SEED = 20_261_120;

const GOOD = { amount: 1000, currency: "EUR" };
const IBAN = "DE89370400440532013000";

/** Returns a value with a number, by its spelling or by its digits. */
type Place = (written: string, digits: string) => unknown;

/** Places of the number in each field of a create. */
const FIELDS: Record<keyof CreatePaymentBody, Place[]> = {
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
    (n) => ({ ...APPROVED_CARD, number: n }),
    (_, digits) => ({ ...APPROVED_CARD, number: Number(digits) }),
    (n) => ({ ...APPROVED_CARD, cvc: n }),
    (n) => ({ ...APPROVED_CARD, postal_code: n }),
    (n) => ({ ...APPROVED_CARD, pan: n }),
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

/** Spellings of a number. */
const WRITINGS: [name: string, write: (number: string) => string][] = [
  ["plain", (n) => n],
  ["in groups", (n) => n.replace(/(\d{4})(?=\d)/g, "$1 ")],
  ["with dashes", (n) => n.replace(/(\d{4})(?=\d)/g, "$1-")],
  ...[..."._/,:|+", "  ", " / ", "%20", "%2E", "%2520"].map((
    joint,
  ): typeof WRITINGS[number] => [
    `with "${joint}"`,
    (n) => n.replace(/(\d{4})(?=\d)/g, `$1${joint}`),
  ]),
  ["percent-encoded", (n) => n.replace(/\d/g, "%3$&")],
  ["in full-width digits", (n) => n.replace(/\d/g, fullWidth)],
];

function fullWidth(digit: string): string {
  return String.fromCodePoint(0xff10 + Number(digit));
}

/**
 * Normalizes a text so that any spelling of a card number is found: decodes it, maps it to ASCII,
 * and joins groups of digits.
 */
function flattened(text: string): string {
  let decoded = text;
  for (let at = 0; at < 3; at++) {
    decoded = decoded.replace(/%[0-7][0-9a-f]/gi, (code) => decodeURIComponent(code));
  }
  return decoded.normalize("NFKC").replaceAll(/[\s._/,:|+-]/g, "");
}

/** Valid numbers of 13 to 19 digits that are not test cards. */
const cardNumbers = fc.stringMatching(/^[3-6][0-9]{11,17}$/)
  .map((body) => body + [..."0123456789"].find((last) => containsCardNumber(body + last)))
  .filter((number) => testCard(number) === undefined);

function withKey(body: unknown) {
  return { body, idempotency_key: crypto.randomUUID().replaceAll(/\d/g, "x") };
}

serviceCase(`${NUMBERS} card numbers in fields that take none`, async (t, service) => {
  const numbers: string[] = [];
  let at = 0;
  const completed = await service.make({ outcome: "success" });
  const authorized = await service.make({ outcome: "success", capture: "manual" });
  const paths = [
    ...[PAYMENTS, `${SANDBOX}/payments`, ENDPOINTS],
    ...[`${PAYMENTS}/${completed.body.id}/refund`, `${PAYMENTS}/${authorized.body.id}/capture`],
  ];
  await fc.assert(
    fc.asyncProperty(cardNumbers, async (number) => {
      // The divisors differ, so every place, spelling and path gets many numbers.
      const place = PLACES[at % PLACES.length]!;
      const [writing, write] = WRITINGS[Math.floor(at / PLACES.length) % WRITINGS.length]!;
      const path = paths[Math.floor(at / 7) % paths.length]!;
      at++;
      numbers.push(number);
      const placed = place(write(number), number) as Record<string, unknown>;
      const response = await service.call("POST", path, withKey({ ...GOOD, ...placed }));
      const what = `${path}, ${JSON.stringify(placed)}, ${writing}: ${response.text}`;
      assert.equal(response.status, CODES.invalid_parameter![0], what);
      assert.ok(["invalid_parameter", "invalid_json"].includes(response.body.error.code), what);
      const shown = flattened(JSON.stringify([response.text, [...response.headers]]));
      assert.ok(!shown.includes(number), what);
    }),
    { numRuns: NUMBERS, seed: SEED },
  );
  await t.step("no table contains one", async () => {
    const dump = flattened(await dumpTables(service));
    assert.deepEqual(numbers.filter((number) => dump.includes(number)), []);
    const [row] = await service.sql`select count(*)::int as payments from pay.payments`;
    // The payments to refund and to capture.
    assert.equal(row!.payments, 2);
  });
  await t.step("no log line contains one", () => {
    const lines = flattened(JSON.stringify(service.logs));
    assert.ok(service.logs.length > NUMBERS);
    assert.deepEqual(numbers.filter((number) => lines.includes(number)), []);
  });
});
