/**
 * The time of the next attempt after a failed one (contract §4): both schedules, jitter and
 * `Retry-After`.
 */

import assert from "node:assert/strict";
import { nextAttemptAt } from "../../shared/domain/webhooks/retry_schedule.ts";

const S = 1000;
const M = 60 * S;
const H = 60 * M;
const AT = Date.parse("2026-08-09T10:11:12.013Z");
/** The waits of the contract. */
const LIVE = [5 * S, 5 * M, 30 * M, 2 * H, 5 * H, 10 * H, 14 * H, 20 * H, 24 * H];
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
