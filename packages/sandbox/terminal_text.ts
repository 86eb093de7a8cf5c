/** Texts for a terminal. */

/** Characters of a foreign text that one line shows. */
const MAX_CHARACTERS = 200;

/** Returns the local time of day, such as `09:05:01`. */
export function localTime(at: Date = new Date()): string {
  return at.toTimeString().slice(0, 8);
}

/** Returns the beginning of a foreign text without characters that could control the terminal. */
export function oneLine(text: string): string {
  return text.slice(0, MAX_CHARACTERS).replace(/[\p{Cc}\p{Cf}\s]+/gu, " ").trim();
}

/** Returns a number with its noun, such as `2 payments`. */
export function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}
