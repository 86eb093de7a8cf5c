/**
 * Time as a value that is passed in, so that 24-hour and 30-day rules are tested without waiting.
 * A request reads its clock once; every time in that request's change is that one reading.
 */

/** Milliseconds since 1970-01-01T00:00:00Z. */
export type Clock = () => number;

/** The machine's clock. */
export const systemClock: Clock = () => Date.now();

/** A request writes its one reading of the clock many times. */
let newest = { at_ms: NaN, text: "" };

/** RFC 3339 in UTC with milliseconds, as every time on the wire (contract §2). */
export function formatTime(at_ms: number): string {
  if (newest.at_ms !== at_ms) newest = { at_ms, text: new Date(at_ms).toISOString() };
  return newest.text;
}
