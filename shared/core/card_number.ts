/**
 * Card numbers: how they are written, checked and recognised, and how one is found in free text.
 *
 * Whether a number may be used is decided by the list of test cards; this module never stores,
 * logs or returns more than it was given. Sources: ISO/IEC 7812 (length, check digit), contract
 * §2, security design "card numbers".
 */

/** Shortest and longest card number (ISO/IEC 7812). */
export const MIN_CARD_DIGITS = 13;
export const MAX_CARD_DIGITS = 19;

/** Brand by the leading digits of a number, first match wins; six digits decide. */
const BRAND_RANGES = [
  { brand: "unionpay", from: 622126, to: 622925 },
  { brand: "amex", from: 340000, to: 349999 },
  { brand: "amex", from: 370000, to: 379999 },
  { brand: "diners", from: 300000, to: 305999 },
  { brand: "diners", from: 309500, to: 309599 },
  { brand: "diners", from: 360000, to: 369999 },
  { brand: "diners", from: 380000, to: 399999 },
  { brand: "jcb", from: 352800, to: 358999 },
  { brand: "visa", from: 400000, to: 499999 },
  { brand: "mastercard", from: 510000, to: 559999 },
  { brand: "mastercard", from: 222100, to: 272099 },
  { brand: "discover", from: 601100, to: 601199 },
  { brand: "discover", from: 644000, to: 659999 },
  { brand: "unionpay", from: 620000, to: 629999 },
  { brand: "unionpay", from: 810000, to: 817199 },
] as const;

/** Brand of a card; `unknown` when no range fits. */
export type CardBrand = typeof BRAND_RANGES[number]["brand"] | "unknown";

/** Drops white space and hyphens, in which card numbers are commonly grouped. */
export function normalizeCardNumber(text: string): string {
  return text.replace(/[\s-]/g, "");
}

/** Whether the text is one or more ASCII digits of which the last is the right check digit. */
export function passesLuhn(digits: string): boolean {
  return /^[0-9]+$/.test(digits) && luhnSum(Array.from(digits, Number)) % 10 === 0;
}

/** The brand of a number without separators, by its first six digits. */
export function cardBrand(digits: string): CardBrand {
  if (!/^[0-9]{6}/.test(digits)) return "unknown";
  const lead = Number(digits.slice(0, 6));
  return BRAND_RANGES.find(({ from, to }) => from <= lead && lead <= to)?.brand ?? "unknown";
}

/**
 * Whether a free text contains what may be a card number: 13 to 19 digits with a right check digit.
 *
 * Digits stand in groups, one space or dash between two groups, and any groups in a row may be the
 * number: "4242424242424242 123" is one with a CVC behind it. A part of a group is not: an innocent
 * long number would nearly always hold one. Digits of every script count, as do their full-width
 * and circled forms, and dashes and spaces of every kind; invisible characters and marks are passed
 * over. One in ten innocent candidates has a right check digit by chance; UUIDs with a letter, which
 * merchants use as references, are therefore passed over whole. Linear in the text.
 */
export function containsCardNumber(text: string): boolean {
  if (ASCII.test(text) && !ENOUGH_DIGITS.test(text)) return false;
  let groups: number[][] = [];
  let group: number[] = [];
  for (const character of withoutUuids(text).normalize("NFKC")) {
    const digit = digitValue(character);
    if (digit !== null) {
      // One digit beyond the longest number is enough to know that the group is too long.
      if (group.length <= MAX_CARD_DIGITS) group.push(digit);
      continue;
    }
    if (INVISIBLE.test(character)) continue;
    const is_joint = group.length > 0 && SEPARATOR.test(character);
    if (group.length > 0) {
      groups.push(group);
      if (endInCardNumber(groups)) return true;
      // No number reaches back over more groups than it has digits.
      if (groups.length === MAX_CARD_DIGITS) groups.shift();
      group = [];
    }
    if (!is_joint && groups.length > 0) groups = [];
  }
  return group.length > 0 && endInCardNumber([...groups, group]);
}

/** Most texts hold too few digits in a row; told at once where no other script can hide any. */
const ASCII = /^\p{ASCII}*$/u;
const ENOUGH_DIGITS = /(?:[0-9][\s-]?){13}/;

const UUID = /(?<![0-9a-z])[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![0-9a-z])/gi;

/** Puts a letter in the place of each UUID that has one: 3 in 1000 would look like a card number. */
function withoutUuids(text: string): string {
  return text.replace(UUID, (uuid) => /[a-f]/i.test(uuid) ? "u" : uuid);
}

const DIGIT = /^\p{Nd}$/u;
const SEPARATOR = /^[\s\p{Pd}\u2212]$/u;
const INVISIBLE = /^[\p{Cf}\p{M}]$/u;

/** Values of digits outside ASCII that were met: at most one entry per digit of Unicode. */
const FOREIGN_DIGITS = new Map<string, number>();

/** Whether the last groups together, however many of them, have the length and check digit. */
function endInCardNumber(groups: readonly (readonly number[])[]): boolean {
  let sum = 0;
  let length = 0;
  for (const group of groups.toReversed()) {
    for (let at = group.length - 1; at >= 0; at--) {
      if (++length > MAX_CARD_DIGITS) return false;
      sum += luhnValue(group[at]!, length % 2 === 0);
    }
    if (length >= MIN_CARD_DIGITS && sum % 10 === 0) return true;
  }
  return false;
}

function luhnSum(digits: readonly number[]): number {
  const { length } = digits;
  return digits.reduce((sum, digit, at) => sum + luhnValue(digit, (length - at) % 2 === 0), 0);
}

/** ISO/IEC 7812-1 annex B: every second digit from the right is doubled, its digits summed. */
function luhnValue(digit: number, is_doubled: boolean): number {
  if (!is_doubled) return digit;
  return digit > 4 ? digit * 2 - 9 : digit * 2;
}

/** The value of a decimal digit of any script, null for every other character. */
function digitValue(character: string): number | null {
  const code = character.codePointAt(0)!;
  if (code < 0x80) return code >= 0x30 && code <= 0x39 ? code - 0x30 : null;
  if (!DIGIT.test(character)) return null;
  let value = FOREIGN_DIGITS.get(character);
  if (value === undefined) {
    // Unicode keeps the ten digits of a script together in ascending order: count those before.
    value = 0;
    while (value < 9 && DIGIT.test(String.fromCodePoint(code - value - 1))) value++;
    FOREIGN_DIGITS.set(character, value);
  }
  return value;
}
