/**
 * Times as the console shows them, in the time zone of the user: `23 Nov 2026, 09:05:00`. A field
 * for a time takes the same form, so a time of a list can be copied into a filter.
 */

import { FieldError } from "./failure.ts";

const SHOWN = new Intl.DateTimeFormat("en-GB", {
  day: "numeric",
  month: "short",
  year: "numeric",
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
});
const MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
/** A clock time after a date: `, 09:05`, ` 09:05:00` or `T09:05`. */
const CLOCK = "(?:(?:,\\s*|\\s+|T)(?<hour>\\d{1,2}):(?<minute>\\d{2})(?::(?<second>\\d{2}))?)?";
/** `23 Nov 2026, 09:05`, `2026-11-23 09:05` and `23.11.2026 09:05`. */
const FORMS = [
  "(?<day>\\d{1,2})\\s+(?<name>[a-z]{3})[a-z]*\\s+(?<year>\\d{4})",
  "(?<year>\\d{4})-(?<month>\\d{2})-(?<day>\\d{2})",
  "(?<day>\\d{1,2})\\.(?<month>\\d{1,2})\\.(?<year>\\d{4})",
].map((form) => new RegExp(`^${form}${CLOCK}$`, "i"));
/** `7 days`, from now on. */
const FROM_NOW = /^(?:in\s+)?(\d{1,4})\s*(minute|hour|day|week)s?$/i;
const UNITS_MS: Readonly<Record<string, number>> = {
  minute: 60_000,
  hour: 3_600_000,
  day: 86_400_000,
  week: 7 * 86_400_000,
};
/** RFC 3339, as the API writes it. */
const INSTANT = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:Z|[+-]\d{2}:\d{2})$/;

export const EXAMPLE_TIME = "23 Nov 2026, 09:05";
/** The fault of a text that is not a time. */
export const NOT_A_TIME = `Not a time: write it like ${EXAMPLE_TIME}`;
/** The name of the user's time zone, such as `Europe/Berlin`. */
export const TIME_ZONE: string = SHOWN.resolvedOptions().timeZone;

export function formatTime(at: Date | string | number): string {
  return SHOWN.format(new Date(at));
}

/** Returns a time without its seconds. */
export function formatMinute(at: string | number): string {
  return formatTime(at).replace(/:\d\d$/, "");
}

/** Returns a day of the API, `2026-11-23`, as the console shows it. */
export function formatDay(day: string): string {
  return formatTime(`${day}T00:00`).split(",")[0]!;
}

/**
 * Parses a time that the user has typed, in the user's time zone. Without a clock time it is the
 * beginning of the day.
 * @returns RFC 3339 in UTC, or null if the text is not a time
 */
export function parseTime(text: string): string | null {
  const trimmed = text.trim();
  for (const form of FORMS) {
    const groups = form.exec(trimmed)?.groups;
    if (groups) return localTime(groups);
  }
  const date = new Date(INSTANT.test(trimmed) ? trimmed : Number.NaN);
  return Number.isNaN(date.getTime()) ? null : date.toISOString();
}

/**
 * Parses a time that a form must have.
 * @param now_ms the present time of the sandbox, if the field takes `7 days` too
 * @throws {FieldError} about the field `param` if the text is not a time
 */
export function timeOf(param: string, text: string, now_ms?: number): string {
  const [, count, unit] = (now_ms !== undefined && FROM_NOW.exec(text.trim())) || [];
  if (count !== undefined) {
    return new Date(now_ms! + Number(count) * UNITS_MS[unit!.toLowerCase()]!).toISOString();
  }
  const time = parseTime(text);
  if (time === null) throw new FieldError(param, NOT_A_TIME);
  return time;
}

/**
 * Parses the day of a form, of which a clock time is left out.
 * @returns the day as the API writes it, `2026-11-23`
 * @throws {FieldError} about the field `param` if the text is not a time
 */
export function dayOf(param: string, text: string): string {
  // Swedish dates have the form of the API.
  return new Date(timeOf(param, text)).toLocaleDateString("sv");
}

function localTime({ name, ...parts }: Record<string, string | undefined>): string | null {
  const number = (part: string) => Number(parts[part] ?? 0);
  const [year, day] = [number("year"), number("day")];
  const month = name === undefined ? number("month") - 1 : MONTHS.indexOf(name.toLowerCase());
  const [hour, minute, second] = [number("hour"), number("minute"), number("second")];
  const date = new Date(year, month, day, hour, minute, second);
  // `Date` turns 31 February into 3 March.
  const is_same = date.getFullYear() === year && date.getMonth() === month &&
    date.getDate() === day && hour < 24 && minute < 60 && second < 60;
  return is_same ? date.toISOString() : null;
}
