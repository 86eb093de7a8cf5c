/** Durations such as `7d` and `1h30m`. */

const UNITS_S: Readonly<Record<string, number>> = {
  w: 604_800,
  d: 86_400,
  h: 3_600,
  m: 60,
  s: 1,
};
const FORM = /^(?:\d{1,9}[wdhms])+$/;

/** Returns the seconds of a duration, or null if the text is none. */
export function parseDuration(text: string): number | null {
  if (!FORM.test(text)) return null;
  return [...text.matchAll(/(\d+)([wdhms])/g)]
    .reduce((sum, [, count, unit]) => sum + Number(count) * UNITS_S[unit!]!, 0);
}
