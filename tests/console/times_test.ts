/** The form of times in the console, which its filters parse. */

import assert from "node:assert/strict";
import { formatTime, parseTime, TIME_ZONE } from "../../apps/console/data/times.ts";

const local = (year: number, month: number, day: number, hour = 0, minute = 0, second = 0) =>
  new Date(year, month, day, hour, minute, second).toISOString();

const TIMES: [text: string, expected: string | null][] = [
  ["23 Nov 2026, 09:05:07", local(2026, 10, 23, 9, 5, 7)],
  ["23 Nov 2026, 09:05", local(2026, 10, 23, 9, 5)],
  ["23 nov 2026 9:05", local(2026, 10, 23, 9, 5)],
  ["3 September 2026", local(2026, 8, 3)],
  ["3 Sept 2026, 10:00", local(2026, 8, 3, 10)],
  ["2026-11-23 09:05", local(2026, 10, 23, 9, 5)],
  ["2026-11-23T09:05:07", local(2026, 10, 23, 9, 5, 7)],
  ["2026-11-23", local(2026, 10, 23)],
  ["  2026-11-23  ", local(2026, 10, 23)],
  ["2026-11-23T09:05:07Z", "2026-11-23T09:05:07.000Z"],
  ["2026-11-23T09:05:07.250+02:00", "2026-11-23T07:05:07.250Z"],
  ["31 Feb 2026", null],
  ["23 Nom 2026", null],
  ["23 Nov 2026, 24:00", null],
  ["23 Nov 2026, 09:60", null],
  ["23 Nov", null],
  ["2026-13-01", null],
  ["yesterday", null],
  ["", null],
];

for (const [text, expected] of TIMES) {
  Deno.test(`parseTime() of "${text}": ${expected === null ? "not a time" : "a time"}`, () => {
    assert.equal(parseTime(text), expected);
  });
}

Deno.test("formatTime() writes what parseTime() reads, in every month", () => {
  for (let month = 0; month < 12; month++) {
    const date = new Date(2030, month, 28, 23, 59, month);
    assert.match(formatTime(date), /^28 [A-Z][a-z]{2,3} 2030, 23:59:\d\d$/);
    assert.equal(parseTime(formatTime(date)), date.toISOString());
  }
});

Deno.test("TIME_ZONE is a name that Intl knows", () => {
  assert.ok(new Intl.DateTimeFormat("en", { timeZone: TIME_ZONE }));
});
