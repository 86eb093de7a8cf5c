/** The calendar of TARGET: published closing days of years, steps of days, cut-off times. */

import assert from "node:assert/strict";
import {
  addDays,
  addTargetDays,
  firstTargetDay,
  isTargetDay,
  targetDayOfOrder,
} from "../../shared/core/target_calendar.ts";

/** Easter Sundays that differ in every term of the algorithm, with the earliest and the latest. */
const EASTER_SUNDAYS = [
  ...["1818-03-22", "1943-04-25", "1954-04-18", "1981-04-19", "2000-04-23", "2008-03-23"],
  ...["2011-04-24", "2016-03-27", "2019-04-21", "2024-03-31", "2025-04-20", "2026-04-05"],
  ...["2027-03-28", "2028-04-16", "2029-04-01", "2030-04-21", "2031-04-13", "2035-03-25"],
  ...["2038-04-25", "2049-04-18", "2076-04-19", "2100-03-28"],
];

for (const easter of EASTER_SUNDAYS) {
  Deno.test(`isTargetDay() has Easter ${easter}`, () => {
    const open = [-3, -2, -1, 0, 1, 2].map((days) => isTargetDay(addDays(easter, days)));
    assert.deepEqual(open, [true, false, false, false, false, true]);
  });
}

/** Closing days that are no Saturday or Sunday, from the publications of the ECB. */
const CLOSING_DAYS: Record<string, string[]> = {
  2023: ["04-07", "04-10", "05-01", "12-25", "12-26"],
  2024: ["01-01", "03-29", "04-01", "05-01", "12-25", "12-26"],
  2025: ["01-01", "04-18", "04-21", "05-01", "12-25", "12-26"],
  2026: ["01-01", "04-03", "04-06", "05-01", "12-25"],
  2027: ["01-01", "03-26", "03-29"],
};

for (const [year, closing_days] of Object.entries(CLOSING_DAYS)) {
  Deno.test(`isTargetDay() has the closing days of ${year}`, () => {
    const closed: string[] = [];
    for (let date = `${year}-01-01`; date.startsWith(year); date = addDays(date, 1)) {
      const is_weekend = [0, 6].includes(new Date(date).getUTCDay());
      if (isTargetDay(date)) assert.ok(!is_weekend, date);
      else if (!is_weekend) closed.push(date.slice(5));
    }
    assert.deepEqual(closed, closing_days);
  });
}

const FIRST: [date: string, expected: string][] = [
  ["2026-11-27", "2026-11-27"], // a Friday
  ["2026-11-28", "2026-11-30"],
  ["2026-04-03", "2026-04-07"], // Good Friday to Easter Monday
  ["2026-05-01", "2026-05-04"],
  ["2026-12-24", "2026-12-24"],
  ["2026-12-25", "2026-12-28"], // Friday, and the 26th is a Saturday
  ["2026-12-31", "2026-12-31"],
  ["2027-01-01", "2027-01-04"],
  ["2028-02-29", "2028-02-29"],
  ["2025-10-03", "2025-10-03"], // a Friday, and a holiday of Germany only
];

for (const [date, expected] of FIRST) {
  Deno.test(`firstTargetDay() at or after ${date} is ${expected}`, () => {
    assert.equal(firstTargetDay(date), expected);
  });
}

const ADDED: [date: string, count: number, expected: string][] = [
  ["2026-11-27", 1, "2026-11-30"],
  ["2026-11-28", 1, "2026-11-30"],
  ["2026-11-27", 5, "2026-12-04"],
  ["2026-04-02", 2, "2026-04-08"],
  ["2026-12-24", 1, "2026-12-28"],
  ["2026-12-31", 1, "2027-01-04"],
];

for (const [date, count, expected] of ADDED) {
  Deno.test(`addTargetDays() ${count} after ${date} is ${expected}`, () => {
    assert.equal(addTargetDays(date, count), expected);
  });
}

/** Central European time is UTC+1 in winter and UTC+2 in summer. */
const ORDERS: [at: string, cut_off: string, expected: string][] = [
  ["2026-11-27T13:59:59Z", "15:00", "2026-11-27"],
  ["2026-11-27T14:00:00Z", "15:00", "2026-11-30"],
  ["2026-07-01T12:59:59Z", "15:00", "2026-07-01"],
  ["2026-07-01T13:00:00Z", "15:00", "2026-07-02"],
  ["2026-11-26T23:00:00Z", "15:00", "2026-11-27"], // already the 27th in Frankfurt
  ["2026-11-28T09:00:00Z", "15:00", "2026-11-30"],
  ["2026-11-27T23:30:00Z", "24:00", "2026-11-30"],
  ["2026-11-27T22:59:59Z", "24:00", "2026-11-27"],
  ["2026-12-24T16:00:00Z", "15:00", "2026-12-28"],
];

for (const [at, cut_off, expected] of ORDERS) {
  Deno.test(`targetDayOfOrder() ${at} with the cut-off ${cut_off} is ${expected}`, () => {
    assert.equal(targetDayOfOrder(new Date(at), cut_off), expected);
  });
}
