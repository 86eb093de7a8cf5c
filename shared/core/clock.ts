/**
 * The clock, as a value that callers pass in, so that tests of 24-hour and 30-day rules do not
 * wait. A request reads the clock once and uses that time throughout its change.
 */

/** Milliseconds since 1970-01-01T00:00:00Z. */
export type Clock = () => number;

/** The machine's clock. */
export const systemClock: Clock = () => Date.now();

/** The last formatted time: a request formats the same time many times. */
let newest = { at_ms: NaN, text: "" };

/** Formats a time as RFC 3339 in UTC with milliseconds, the form on the wire (contract §2). */
export function formatTime(at_ms: number): string {
  if (newest.at_ms !== at_ms) newest = { at_ms, text: new Date(at_ms).toISOString() };
  return newest.text;
}
