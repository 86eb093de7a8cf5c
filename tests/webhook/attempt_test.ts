/**
 * One attempt and what follows from it (contract §4): its record, the time of the next attempt by
 * both schedules, jitter and `Retry-After`, and the end of its endpoint.
 */

import assert from "node:assert/strict";
import type { WebhookResult } from "../../shared/delivery/webhook_sender.ts";
import { makeAttempt, type Send } from "../../shared/domain/webhooks/attempt.ts";
import { disablingReason } from "../../shared/domain/webhooks/disable_endpoint.ts";
import { nextAttemptAt } from "../../shared/domain/webhooks/retry_schedule.ts";
import type { LeasedDelivery } from "../../shared/store/webhook_store.ts";

const S = 1000;
const M = 60 * S;
const H = 60 * M;
const D = 24 * H;
const AT = Date.parse("2026-08-09T10:11:12.013Z");
/** The waits of the contract. */
const LIVE = [5 * S, 5 * M, 30 * M, 2 * H, 5 * H, 10 * H, 14 * H, 20 * H, D];
const TEST = [5 * S, 1 * M, 10 * M];
const NEARLY_ONE = 255 / 256;

/** The wait after a failed attempt; null after the last one. */
function waitAfter(
  number: number,
  livemode: boolean,
  random: number,
  retry_after?: string,
): number | null {
  const next = nextAttemptAt({ livemode, number, at_ms: AT, retry_after }, random);
  return next === null ? null : next - AT;
}

for (const [i, wait] of TEST.entries()) {
  Deno.test(`nextAttemptAt() test attempt ${i + 1}: ${wait} ms for any random number`, () => {
    for (const random of [0, 0.5, NEARLY_ONE]) assert.equal(waitAfter(i + 1, false, random), wait);
  });
}

for (const [i, wait] of LIVE.entries()) {
  Deno.test(`nextAttemptAt() live attempt ${i + 1}: ${wait} ms ± 20 %`, () => {
    assert.equal(waitAfter(i + 1, true, 0), wait * 0.8);
    assert.equal(waitAfter(i + 1, true, 0.5), wait);
    const latest = waitAfter(i + 1, true, NEARLY_ONE)!;
    assert.ok(latest > wait * 1.19 && latest <= wait * 1.2, `${latest}`);
  });
}

Deno.test("nextAttemptAt() is null after the last attempt", () => {
  for (const number of [4, 5, 100]) assert.equal(waitAfter(number, false, 0.5), null);
  for (const number of [10, 11, 100]) assert.equal(waitAfter(number, true, 0.5), null);
  assert.equal(waitAfter(4, false, 0.5, "60"), null);
});

/** [Retry-After of the second test attempt, the wait]. Without the header the wait is 60 s. */
const REQUESTED: [retry_after: string, wait_ms: number][] = [
  ["0", 60 * S],
  ["59", 60 * S],
  ["60", 60 * S],
  ["61", 61 * S],
  ["119", 119 * S],
  ["120", 120 * S],
  ["121", 120 * S],
  ["999999999", 120 * S],
  [new Date(AT + 90 * S).toUTCString(), 90 * S - AT % S],
  [new Date(AT - 90 * S).toUTCString(), 60 * S],
  [new Date(AT + H).toUTCString(), 120 * S],
  ["soon", 60 * S],
  ["-5", 60 * S],
  ["", 60 * S],
];
for (const [retry_after, wait_ms] of REQUESTED) {
  Deno.test(`nextAttemptAt() Retry-After "${retry_after}": ${wait_ms} ms`, () => {
    assert.equal(waitAfter(2, false, 0.5, retry_after), wait_ms);
  });
}

Deno.test("nextAttemptAt() limits a live Retry-After to the base and twice the base", () => {
  for (const [i, base] of LIVE.entries()) {
    for (const random of [0, 0.3, 0.7, NEARLY_ONE]) {
      for (const share of [0, 0.5, 0.9, 1, 1.1, 1.5, 1.9, 2, 3]) {
        const requested_s = Math.round(base * share / S);
        const wait = waitAfter(i + 1, true, random, String(requested_s))!;
        assert.ok(wait >= base && wait <= 2 * base, `${base} ${random} ${share}: ${wait}`);
        if (share >= 1.5 && share <= 2) assert.equal(wait, Math.min(requested_s * S, 2 * base));
      }
    }
  }
});

const ATTEMPT = {
  event_id: "evt_1",
  body: "{}",
  url: "https://hooks.example.com/",
  number: 3,
  secrets: ["whsec_" + btoa("s".repeat(32))],
  allow_private: false,
  livemode: false,
  signed_ms: AT,
};

/** Makes an attempt whose sends have this result. */
async function attemptWith(
  result: WebhookResult,
  changes: Partial<Parameters<typeof makeAttempt>[0]> = {},
) {
  const sent: Parameters<Send>[0][] = [];
  const ended = await makeAttempt({ ...ATTEMPT, ...changes }, AT, (request) => {
    sent.push(request);
    return Promise.resolve(result);
  });
  return { ...ended, sent };
}

for (
  const status of [200, 201, 204, 299, 301, 302, 303, 304, 307, 308, 400, 404, 410, 429, 500, 503]
) {
  const is_delivered = status < 300;
  Deno.test(`makeAttempt() with the response ${status}: delivered ${is_delivered}`, async () => {
    const result = { outcome: "response", status, retry_after: "9", duration_ms: 200 } as const;
    const { delivered, record, retry_after } = await attemptWith(result);
    assert.deepEqual([delivered, retry_after], [is_delivered, "9"]);
    assert.deepEqual(record, {
      number: 3,
      at: new Date(AT).toISOString(),
      response_status: status,
      duration_ms: 200,
      error: null,
    });
  });
}

for (const outcome of ["timeout", "connection_failed"] as const) {
  Deno.test(`makeAttempt() with the outcome ${outcome} is not delivered`, async () => {
    const { delivered, record, retry_after } = await attemptWith({ outcome, duration_ms: 100 });
    const { response_status, duration_ms, error } = record;
    assert.deepEqual([delivered, retry_after], [false, undefined]);
    assert.deepEqual([response_status, duration_ms, error], [null, 100, outcome]);
  });
}

for (const livemode of [false, true]) {
  Deno.test(`makeAttempt() asks for the response only of a sandbox: ${!livemode}`, async () => {
    const result = { outcome: "timeout", duration_ms: 100 } as const;
    const { sent: [request], log_entry } = await attemptWith(result, { livemode });
    assert.deepEqual(
      [request!.response_bytes, log_entry === null],
      livemode ? [undefined, true] : [1024, false],
    );
  });
}

/** Each row: a response, the mode, for how long the endpoint has been failing, and the reason. */
const ENDS: [status: number, livemode: boolean, failing_ms: number | null, string | null][] = [
  [410, true, null, "gone"],
  [410, false, null, "gone"],
  [500, true, null, null],
  [500, true, 5 * D - 1, null],
  [500, true, 5 * D, "failing"],
  [200, true, 5 * D, null],
  [500, false, 29 * D, null],
];
for (const [status, livemode, failing_ms, reason] of ENDS) {
  const name = `${status}, live ${livemode}, failing for ${failing_ms} ms`;
  Deno.test(`disablingReason() ${name}: ${reason}`, async () => {
    const failing_since = failing_ms === null ? null : new Date(AT - failing_ms);
    const delivery = { livemode, failing_since } as LeasedDelivery;
    const ended = await attemptWith({ outcome: "response", status, duration_ms: 100 });
    assert.equal(disablingReason(delivery, ended, AT), reason);
  });
}
