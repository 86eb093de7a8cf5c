/**
 * Card numbers where none belongs: a thousand valid numbers, each in some field of some route, are
 * refused, and there is no trace of them in the database, the logs or the answers.
 */

import assert from "node:assert/strict";
import fc from "fast-check";
import { passesLuhn } from "../../shared/core/card_number.ts";
import { TEST_CARDS } from "../../shared/domain/test_values.ts";
import { APPROVED_CARD, type TestService } from "../support/service.ts";
import { CODES } from "./error_envelope.ts";
import { PAYMENTS, SANDBOX, serviceCase } from "./service_case.ts";
import { dumpTables } from "./table_dump.ts";

const NUMBERS = 1_000;
/** Any seed; printed with a failure by fast-check. */
const SEED = 20_261_120;

const GOOD = { amount: 1000, currency: "EUR" };

type Place = (number: string) => Record<string, unknown>;

/** Where a number is put in the body of a create. */
const PLACES: [name: string, place: Place][] = [
  ["card.number", (n) => ({ card: { ...APPROVED_CARD, number: n } })],
  ["card", (n) => ({ card: n })],
  ["card.cvc", (n) => ({ card: { ...APPROVED_CARD, cvc: n } })],
  ["card.postal_code", (n) => ({ card: { ...APPROVED_CARD, postal_code: n } })],
  ["an unknown field of card", (n) => ({ card: { ...APPROVED_CARD, pan: n } })],
  ["iban", (n) => ({ iban: n })],
  ["iban.iban", (n) => ({ iban: { iban: n } })],
  ["iban.holder_name", (n) => ({ iban: { iban: "DE89370400440532013000", holder_name: n } })],
  ["wallet", (n) => ({ wallet: n })],
  ["wallet.address", (n) => ({ wallet: { address: n } })],
  ["customer.name", (n) => ({ customer: { email: "a@b.example", name: `Mr ${n}` } })],
  ["customer.email", (n) => ({ customer: { email: `${n}@b.example` } })],
  ["payer.email", (n) => ({ payer: { email: `a@${n}.example` } })],
  ["description", (n) => ({ description: `paid with ${n}` })],
  ["description with a CVC", (n) => ({ description: `${n} 123` })],
  ["reference", (n) => ({ reference: n })],
  ["a value of metadata", (n) => ({ metadata: { order: n } })],
  ["a key of metadata", (n) => ({ metadata: { [n]: "1" } })],
  ["currency", (n) => ({ currency: n })],
  ["outcome", (n) => ({ outcome: n })],
  ["an unknown field", (n) => ({ note: n })],
  ["an unknown field's name", (n) => ({ [n]: 1 })],
  ["deep in an unknown field", (n) => ({ note: [{ a: [[{ b: n }]] }] })],
  ["a name deep in an unknown field", (n) => ({ note: [{ a: { [n]: null } }] })],
  ["a JSON number", (n) => ({ note: Number(n) })],
  ["a JSON number as amount", (n) => ({ amount: Number(n) })],
  ["a JSON number as card.number", (n) => ({ card: { ...APPROVED_CARD, number: Number(n) } })],
];

/** How a number is written. */
const WRITINGS: [name: string, write: (number: string) => string][] = [
  ["plain", (n) => n],
  ["in groups", (n) => n.replace(/(\d{4})(?=\d)/g, "$1 ")],
  ["with dashes", (n) => n.replace(/(\d{4})(?=\d)/g, "$1-")],
];

/** Valid numbers of 13 to 19 digits that are no test cards. */
const cardNumbers = fc.stringMatching(/^[3-6][0-9]{11,17}$/)
  .map((body) => body + [..."0123456789"].find((last) => passesLuhn(body + last)))
  .filter((number) => !TEST_CARDS.has(number));

const ROUTES: [name: string, send: (service: TestService, body: unknown) => Promise<unknown>][] = [
  ["a create", (service, body) => service.call("POST", PAYMENTS, withKey(body))],
  [
    "a sandbox create",
    (service, body) => service.call("POST", `${SANDBOX}/payments`, withKey(body)),
  ],
  ["a refund", async (service, body) => {
    const { id } = await someCompleted(service);
    return service.call("POST", `${PAYMENTS}/${id}/refund`, withKey(body));
  }],
  [
    "a webhook endpoint",
    (service, body) => service.call("POST", "/api-v1-payments/v1/webhook_endpoints", withKey(body)),
  ],
];

function withKey(body: unknown) {
  return { body, idempotency_key: crypto.randomUUID().replaceAll(/\d/g, "x") };
}

const completed = new WeakMap<TestService, { id: string }>();

async function someCompleted(service: TestService): Promise<{ id: string }> {
  if (!completed.has(service)) {
    completed.set(service, (await service.make({ outcome: "success" })).body);
  }
  return completed.get(service)!;
}

serviceCase(`${NUMBERS} card numbers where none belongs`, async (t, service) => {
  const numbers: string[] = [];
  let at = 0;
  await fc.assert(
    fc.asyncProperty(cardNumbers, async (number) => {
      // Every place, writing and route comes up with many numbers.
      const [place_name, place] = PLACES[at % PLACES.length]!;
      const [writing, write] = WRITINGS[Math.floor(at / PLACES.length) % WRITINGS.length]!;
      const [route, send] = ROUTES[Math.floor(at / 7) % ROUTES.length]!;
      at++;
      numbers.push(number);
      const written = place_name.startsWith("a JSON number") ? number : write(number);
      // deno-lint-ignore no-explicit-any
      const answer: any = await send(service, { ...GOOD, ...place(written) });
      const what = `${route}, ${place_name}, ${writing}: ${answer.text}`;
      assert.equal(answer.status, CODES.invalid_parameter![0], what);
      assert.ok(["invalid_parameter", "invalid_json"].includes(answer.body.error.code), what);
      const shown = JSON.stringify([answer.text, [...answer.headers]]).replaceAll(/[\s-]/g, "");
      assert.ok(!shown.includes(number), what);
    }),
    { numRuns: NUMBERS, seed: SEED },
  );
  await t.step("no table holds one", async () => {
    const dump = (await dumpTables(service)).replaceAll(/[\s-]/g, "");
    assert.deepEqual(numbers.filter((number) => dump.includes(number)), []);
    const [row] = await service.sql`select count(*)::int as payments from pay.payments`;
    assert.equal(row!.payments, 1);
  });
  await t.step("no log line holds one", () => {
    const lines = JSON.stringify(service.logs);
    assert.ok(service.logs.length > NUMBERS);
    assert.deepEqual(numbers.filter((number) => lines.includes(number)), []);
  });
});
