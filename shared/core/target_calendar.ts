/**
 * The calendar of TARGET, on whose days banks settle SEPA credit transfers and direct debits.
 *
 * TARGET is closed on Saturdays, Sundays, 1 January, Good Friday, Easter Monday, 1 May, 25 December
 * and 26 December, and on no holiday of a country (European Central Bank, long-term calendar, in
 * force since 2002). Instant payments settle on every day and do not use this calendar. A date is
 * the text `YYYY-MM-DD`.
 */

const DAY_MS = 86_400_000;

const TIME_ZONE = "Europe/Berlin";

/** Closing days with a fixed date, as `MM-DD`. */
const FIXED_CLOSING_DAYS = new Set(["01-01", "05-01", "12-25", "12-26"]);

/** Good Friday and Easter Monday, in days after Easter Sunday. */
const EASTER_CLOSING_DAYS = new Set([-2, 1]);

export function isTargetDay(date: string): boolean {
  const weekday = new Date(date).getUTCDay();
  if (weekday === 0 || weekday === 6) return false;
  if (FIXED_CLOSING_DAYS.has(date.slice(5))) return false;
  const days_after_easter = (Date.parse(date) - easterSunday(Number(date.slice(0, 4)))) / DAY_MS;
  return !EASTER_CLOSING_DAYS.has(days_after_easter);
}

export function firstTargetDay(date: string): string {
  let day = date;
  while (!isTargetDay(day)) day = addDays(day, 1);
  return day;
}

/** Returns the TARGET day that is `count` TARGET days after a date, for a count of at least 1. */
export function addTargetDays(date: string, count: number): string {
  let day = date;
  for (let left = count; left > 0; left--) day = firstTargetDay(addDays(day, 1));
  return day;
}

/** Returns the date that is `count` calendar days after a date. */
export function addDays(date: string, count: number): string {
  return new Date(Date.parse(date) + count * DAY_MS).toISOString().slice(0, 10);
}

/**
 * Returns the TARGET day on which a bank works on an order: the day on which it gets the order,
 * unless TARGET is closed or the bank's cut-off time is over, else the next TARGET day.
 *
 * @param cut_off first time of day that is too late, as `HH:MM` in Central European (summer) time
 */
export function targetDayOfOrder(at: Date, cut_off: string): string {
  const day = centralEuropeanDate(at);
  return firstTargetDay(centralEuropeanTime(at).slice(11, 16) < cut_off ? day : addDays(day, 1));
}

export function centralEuropeanDate(at: Date): string {
  return centralEuropeanTime(at).slice(0, 10);
}

/** Returns a time as `YYYY-MM-DD HH:MM:SS`, which is its Swedish form. */
function centralEuropeanTime(at: Date): string {
  return at.toLocaleString("sv-SE", { timeZone: TIME_ZONE });
}

/** Returns Easter Sunday in ms: the algorithm of Meeus, Jones and Butcher for Gregorian years. */
function easterSunday(year: number): number {
  const golden = year % 19;
  const century = Math.floor(year / 100);
  const leap_correction = century - Math.floor(century / 4);
  const moon_correction = Math.floor((century - Math.floor((century + 8) / 25) + 1) / 3);
  const epact = (19 * golden + leap_correction - moon_correction + 15) % 30;
  const weekday = (32 + 2 * (century % 4) + 2 * Math.floor(year % 100 / 4) - epact - year % 4) % 7;
  const late_moon = Math.floor((golden + 11 * epact + 22 * weekday) / 451);
  const days = epact + weekday - 7 * late_moon;
  return Date.UTC(year, 2, 22 + days);
}
