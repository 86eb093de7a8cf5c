/**
 * The modules of apps/console/data that need no page: words for names of the API, the judgement of
 * a key, amounts, times, idempotency keys, and the health of an endpoint. Also the body of a
 * create.
 */

import assert from "node:assert/strict";
import {
  ApiError,
  ConnectionError,
  type ErrorCode,
  type WebhookDelivery,
} from "../../packages/client/mod.ts";
import { attemptsOf, bucketsOf, healthOf } from "../../apps/console/data/attempts.ts";
import { failureOf } from "../../apps/console/data/failure.ts";
import { createBody, FIRST_DRAFT, type Method } from "../../apps/console/forms/create_body.ts";
import { formatMinor, parseAmount, plainMinor } from "../../apps/console/data/money.ts";
import { retryKey } from "../../apps/console/data/retry_key.ts";
import { judgeKey, type KeyVerdict, maskedKey } from "../../apps/console/data/session.ts";
import { dayOf, formatDay, formatTime, parseTime } from "../../apps/console/data/times.ts";
import { eventNote, toneOf } from "../../apps/console/data/words.ts";
import { generateApiKey } from "../../shared/core/api_key.ts";
import { EVENT_TYPES } from "../../shared/core/vocabulary.ts";
import { CreatePaymentBody } from "../../shared/schema/payment_body.ts";

Deno.test("eventNote() after a chargeback: a won dispute, with either status", () => {
  for (const type of ["payment.completed", "payment.partially_refunded"] as const) {
    assert.equal(eventNote(type, "payment.chargeback"), "Chargeback reversed");
    assert.equal(eventNote(type, "payment.created"), null);
  }
});

Deno.test("eventNote() repeats the words of no event type", () => {
  for (const type of EVENT_TYPES) {
    const note = eventNote(type)?.toLowerCase().replaceAll(" ", "_");
    assert.ok(note === undefined || !type.endsWith(note), type);
  }
});

Deno.test("toneOf() a status of a newer service: off", () => {
  assert.equal(toneOf("suspended" as "pending"), "off");
  assert.equal(toneOf("delivered"), "good");
});

const KEYS: [text: string, verdict: KeyVerdict][] = [
  [generateApiKey("test"), "test"],
  [generateApiKey("test", "acme"), "test"],
  [generateApiKey("live"), "live"],
  [generateApiKey("live", "acme"), "live"],
  [`Bearer ${generateApiKey("live")}`, "live"],
  ["sk_live_", "live"],
  ["SK_LIVE_1", "live"],
  [generateApiKey("test").slice(0, -1), "malformed"],
  [`${generateApiKey("test")}x`, "malformed"],
  [`${generateApiKey("test")}\n${generateApiKey("live")}`, "live"],
  ["", "malformed"],
  ["test", "malformed"],
];

for (const [text, verdict] of KEYS) {
  Deno.test(`judgeKey() ${JSON.stringify(text.slice(0, 14))}… of ${text.length}: ${verdict}`, () => {
    assert.equal(judgeKey(text), verdict);
  });
}

Deno.test("maskedKey() shows prefix and last four", () => {
  const key = generateApiKey("test", "acme");
  assert.equal(maskedKey(key), `acme_test_…${key.slice(-4)}`);
});

const EXACT: [amount_minor: number, currency: string, shown: string, typed: string][] = [
  [1, "EUR", "0.01", "0.01"],
  [-1050, "EUR", "−10.50", "−10.50"],
  [1999, "EUR", "19.99", "19.99"],
  [1_234_567, "EUR", "12,345.67", "12345.67"],
  [999_999_999_999, "EUR", "9,999,999,999.99", "9999999999.99"],
  [5, "JPY", "5", "5"],
  [1, "KWD", "0.001", "0.001"],
  [1_234_567, "TND", "1,234.567", "1234.567"],
  [1, "USDC", "0.000001", "0.000001"],
];

for (const [amount_minor, currency, shown, typed] of EXACT) {
  Deno.test(`formatMinor() ${amount_minor} ${currency} is ${shown}, and can be parsed`, () => {
    assert.equal(formatMinor(amount_minor, currency), shown);
    assert.equal(plainMinor(amount_minor, currency), typed);
    assert.equal(parseAmount(typed, currency), amount_minor);
    assert.equal(parseAmount(shown, currency), amount_minor);
    assert.equal(parseAmount(`${shown} ${currency}`, currency), amount_minor);
  });
}

const TYPED: [text: string, currency: string, amount_minor: number][] = [
  ["19", "EUR", 1900],
  ["19.9", "EUR", 1990],
  [".5", "EUR", 50],
  [" 7 ", "eur", 700],
  // A float would give 113.99999999999999 and 1998.9999999999998.
  ["1.14", "EUR", 114],
  ["19.99", "EUR", 1999],
  ["0", "EUR", 0],
  ["-0", "EUR", 0],
  ["-5", "EUR", -500],
  ["1,234.50", "EUR", 123450],
  ["1,234,567", "EUR", 123456700],
  ["1,234", "JPY", 1234],
  ["19.99 eur", "EUR", 1999],
  ["−10.50", "EUR", -1050],
  ["−1,234.50 EUR", "EUR", -123450],
  ["19,99", "EUR", 1999],
  ["9,9", "EUR", 990],
  ["1.234,50", "EUR", 123450],
  ["1.234.567", "EUR", 123456700],
  ["1 234,50", "EUR", 123450],
  ["1'234.50 CHF", "CHF", 123450],
  ["1.234", "JPY", 1234],
  ["1.234", "KWD", 1234],
];

for (const [text, currency, amount_minor] of TYPED) {
  Deno.test(`parseAmount() "${text}" ${currency} is ${amount_minor}`, () => {
    assert.ok(Object.is(parseAmount(text, currency), amount_minor));
  });
}

const REFUSED: [text: string, currency: string, message: RegExp][] = [
  ["", "EUR", /Enter an amount/],
  ["ten", "EUR", /not an amount: write it like 19.99/],
  ["1,234", "EUR", /"1,234" can mean 1234 or 1\.234: write 1234\.00 or fewer decimals/],
  ["1.234", "EUR", /"1\.234" can mean 1234 or 1\.234/],
  ["1,234", "KWD", /can mean 1234 or 1\.234/],
  ["12,34,567.00", "EUR", /not an amount/],
  ["1234,567.00", "EUR", /not an amount/],
  [",123.00", "EUR", /not an amount/],
  ["1 23.50", "EUR", /not an amount: write it like 19\.99/],
  ["1.234 567,00", "EUR", /not an amount/],
  ["19.99 USD", "EUR", /"19\.99 USD" is not in EUR/],
  ["1,234.5678", "EUR", /too many decimals/],
  ["1e3", "EUR", /not an amount/],
  ["0x10", "EUR", /not an amount/],
  [".", "EUR", /not an amount/],
  ["1.2.3", "EUR", /not an amount/],
  ["0.999", "EUR", /too many decimals: EUR has at most 2 decimals/],
  ["1.5", "JPY", /too many decimals: JPY has no decimals/],
  ["90071992547409.93", "EUR", /too large/],
];

for (const [text, currency, message] of REFUSED) {
  Deno.test(`parseAmount() "${text}" ${currency} is refused`, () => {
    assert.throws(() => parseAmount(text, currency), message);
  });
}

const local = (year: number, month: number, day: number, hour = 0, minute = 0, second = 0) =>
  new Date(year, month, day, hour, minute, second).toISOString();

const TIMES: [text: string, expected: string | null][] = [
  ["23 Nov 2026, 09:05:07", local(2026, 10, 23, 9, 5, 7)],
  ["23 Nov 2026, 09:05", local(2026, 10, 23, 9, 5)],
  ["23 nov 2026 9:05", local(2026, 10, 23, 9, 5)],
  ["3 Sept 2026, 10:00", local(2026, 8, 3, 10)],
  ["2026-11-23 09:05", local(2026, 10, 23, 9, 5)],
  ["2026-11-23T09:05:07", local(2026, 10, 23, 9, 5, 7)],
  ["2026-11-23", local(2026, 10, 23)],
  ["  2026-11-23  ", local(2026, 10, 23)],
  ["2026-11-23T09:05:07Z", "2026-11-23T09:05:07.000Z"],
  ["2026-11-23T09:05:07.250+02:00", "2026-11-23T07:05:07.250Z"],
  ["06.12.2026", local(2026, 11, 6)],
  ["6.12.2026 9:05", local(2026, 11, 6, 9, 5)],
  ["31.02.2026", null],
  ["06/12/2026", null],
  ["31 Feb 2026", null],
  ["23 Nom 2026", null],
  ["23 Nov 2026, 24:00", null],
  ["2026-13-01", null],
  ["yesterday", null],
  ["", null],
];

for (const [text, expected] of TIMES) {
  Deno.test(`parseTime() of "${text}": ${expected === null ? "not a time" : "a time"}`, () => {
    assert.equal(parseTime(text), expected);
  });
}

Deno.test("dayOf() reads the day of every form, also what formatDay() writes", () => {
  for (const text of ["2026-12-06", "6 Dec 2026", "06.12.2026", "6 Dec 2026, 23:59"]) {
    assert.equal(dayOf("mandate.signed_at", text), "2026-12-06");
  }
  assert.equal(formatDay("2026-12-06"), "6 Dec 2026");
  assert.throws(() => dayOf("mandate.signed_at", "tomorrow"), /Not a time/);
});

Deno.test("formatTime() writes what parseTime() reads, in every month", () => {
  for (let month = 0; month < 12; month++) {
    const date = new Date(2030, month, 28, 23, 59, month);
    assert.match(formatTime(date), /^28 [A-Z][a-z]{2,3} 2030, 23:59:\d\d$/);
    assert.equal(parseTime(formatTime(date)), date.toISOString());
  }
});

const FAILED = { operation: "POST /v1/payments", idempotencyKey: "1", attempts: 1 };

function apiError(code: ErrorCode, status: number): ApiError {
  const body = { type: "api", code, message: "", request_id: "req_1", doc_url: "" } as const;
  return new ApiError({ status, body }, FAILED);
}

/** The end of a request, and whether the same request has the same idempotency key after it. */
const ENDS: [end: string, error: unknown, is_kept: boolean][] = [
  ["a success", null, false],
  ["a lost response", new ConnectionError(FAILED, new Error("reset")), true],
  ["400", apiError("invalid_parameter", 400), false],
  ["402", apiError("insufficient_funds", 402), false],
  ["409 idempotency_conflict", apiError("idempotency_conflict", 409), false],
  ["409 idempotency_in_progress", apiError("idempotency_in_progress", 409), true],
  ["429", apiError("rate_limited", 429), true],
  ["500", apiError("internal_error", 500), true],
];

for (const [end, error, is_kept] of ENDS) {
  Deno.test(`retryKey() of the same request after ${end}: ${is_kept ? "the same" : "a new one"}`, () => {
    const request = (amount: number) => () => ({
      resource: "payments",
      method: "create",
      args: [{ amount }],
    });
    const { key, settle } = retryKey(request(1));
    assert.notEqual(retryKey(request(2)).key, key);
    settle(error === null ? null : failureOf(error));
    const again = retryKey(request(1));
    assert.equal(again.key === key, is_kept);
    again.settle(null);
    assert.equal(retryKey(request(1), "own").key, "own");
  });
}

/** Deliveries with one attempt each, by its second and its status; null: there was no response. */
function deliveriesOf(...attempts: [second: number, status: number | null][]): WebhookDelivery[] {
  return attempts.map(([second, response_status], i) => ({
    id: `whd_${i}`,
    attempts: [{
      number: 1,
      at: new Date(Date.UTC(2026, 10, 24) + second * 1000).toISOString(),
      response_status,
      duration_ms: 100 * (i + 1),
      error: null,
    }],
  })) as unknown as WebhookDelivery[];
}

Deno.test("healthOf() rounds the share of success down", () => {
  const share = (taken: number, failed: number) =>
    healthOf(attemptsOf(deliveriesOf(
      ...Array.from({ length: taken }, (): [number, number] => [0, 204]),
      ...Array.from({ length: failed }, (): [number, null] => [0, null]),
    ))).percent;
  assert.deepEqual(
    [share(1, 0), share(0, 1), share(1, 1), share(2, 1), share(1999, 1)],
    ["100", "0", "50", "66.6", "99.9"],
  );
});

Deno.test("healthOf() gives quantiles of the durations", () => {
  const attempts = attemptsOf(deliveriesOf(...Array.from({ length: 20 }, (): [number, number] => [
    0,
    200,
  ])));
  const { median_ms, slow_ms } = healthOf(attempts);
  assert.deepEqual([median_ms, slow_ms], [1000, 1900]);
});

Deno.test("bucketsOf() counts each attempt once, the first and the last at the ends", () => {
  const attempts = attemptsOf(deliveriesOf([0, 500], [1, 204], [7200, 204], [86_400, 301]));
  const buckets = bucketsOf(attempts);
  assert.equal(buckets.length, 24);
  const sum = (name: "taken" | "failed") => buckets.reduce((total, it) => total + it[name], 0);
  assert.deepEqual([sum("taken"), sum("failed")], [2, 2]);
  assert.deepEqual([buckets[0]!.taken, buckets[0]!.failed], [1, 1]);
  assert.equal(buckets.at(-1)!.failed, 1);
});

Deno.test("createBody() can send every field of a create", () => {
  const texts = Object.entries(FIRST_DRAFT).map(([name, text]) => [name, text || "1"]);
  const draft: typeof FIRST_DRAFT = { ...Object.fromEntries(texts), metadata: [["order", "7"]] };
  const methods: Method[] = ["card", "iban", "wallet", "saved", "outcome"];
  const sent = methods.flatMap((method) =>
    (["A", "B"] as const).flatMap((variant) =>
      Object.keys(createBody({ ...draft, method, variant }))
    )
  );
  assert.deepEqual(new Set(sent), new Set(Object.keys(CreatePaymentBody.shape)));
});
