/**
 * Card numbers: how they are written, checked and recognised, and how one is found in free text.
 *
 * Whether a number may be used is decided by the list of test cards; this module never stores,
 * logs or returns more than it was given. Sources: ISO/IEC 7812 (length, check digit), contract
 * §2, security design "card numbers".
 */

/** Shortest and longest card number (ISO/IEC 7812). */
const MIN_CARD_DIGITS = 13;
const MAX_CARD_DIGITS = 19;

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
type CardBrand = typeof BRAND_RANGES[number]["brand"] | "unknown";

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
 * Whether a free text may contain a card number: 13 to 19 digits with a valid check digit
 * (docs/decisions/0033-card-numbers-in-free-text.md).
 *
 * A run of digits counts unless it begins like a time. Groups of digits count if their first digits
 * are those of a payment card. Any separators may stand between groups, and any consecutive groups
 * may be the number ("4242 4242 4242 4242 123" is a number with a CVC). Part of a group never
 * counts, because a long run of digits nearly always contains a valid part. Digits of every script
 * and percent-encoded digits count. Invisible characters, UUIDs and hex ids are ignored. Takes
 * linear time.
 */
export function containsCardNumber(text: string): boolean {
  if (!mayHoldNumber(text)) return false;
  const rest = withoutHexIds(text);
  if (rest !== text && !mayHoldNumber(rest)) return false;
  if (holdsNumber(rest)) return true;
  // The text as it is was checked first: decoding "%4242…" would destroy a number in it.
  for (let at = 0, encoded = rest; at < MAX_ENCODINGS && encoded.includes("%"); at++) {
    const decoded = decodePercents(encoded);
    if (decoded === encoded) return false;
    if (holdsNumber(decoded)) return true;
    encoded = decoded;
  }
  return false;
}

/** How often a text may be percent-encoded: `%2520` is a space that two programs have encoded. */
const MAX_ENCODINGS = 3;

const UUID = /(?<![0-9a-z])[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![0-9a-z])/gi;
/** 96 bits (object ids), 128 (MD5), 160 (SHA-1), 256 (SHA-256) and 512 bits (SHA-512). */
const HEX_ID = /(?<![0-9a-z])(?:(?:[0-9a-f]{8}){3,5}|[0-9a-f]{64}|[0-9a-f]{128})(?![0-9a-z])/gi;

/** Replaces UUIDs and hex ids that contain a letter: some look like a card number by chance. */
function withoutHexIds(text: string): string {
  const replaced = (id: string) => /[a-f]/i.test(id) ? "x" : id;
  return text.replace(UUID, replaced).replace(HEX_ID, replaced);
}

/** Whether a text can have enough digits. Text outside ASCII always can. */
function mayHoldNumber(text: string): boolean {
  let digits = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code >= 0x80) return true;
    // Percent-encoding hides none: an encoded digit contains at least one digit.
    if (code >= 0x30 && code <= 0x39 && ++digits === MIN_CARD_DIGITS) return true;
  }
  return false;
}

/** Decodes percent-encoded characters; everything else stays. */
function decodePercents(text: string): string {
  return text.replace(/(?:%[0-9a-f]{2})+/gi, (run) => {
    const bytes = new Uint8Array(run.length / 3);
    for (let at = 0; at < bytes.length; at++) {
      bytes[at] = parseInt(run.slice(at * 3 + 1, at * 3 + 3), 16);
    }
    return UTF_8.decode(bytes);
  });
}

const UTF_8 = new TextDecoder();

/** A run of digits, and the separators between it and the group before. */
interface Group {
  digits: number[];
  /** The kinds of separators, as bits; 0 for the first group. */
  joint: number;
  /** Whether a plus sign stands directly before the digits. */
  after_plus: boolean;
}

function holdsNumber(text: string): boolean {
  let groups: Group[] = [];
  let next: Group = { digits: [], joint: 0, after_plus: false };
  for (let at = 0; at < text.length; at++) {
    const code = text.codePointAt(at)!;
    if (code > 0xffff) at++;
    for (const sign of signsOf(code)) {
      if (sign <= 9) {
        // One digit beyond the longest number is enough to know that the group is too long.
        if (next.digits.length <= MAX_CARD_DIGITS) next.digits.push(sign);
        continue;
      }
      if (sign === INVISIBLE) continue;
      if (next.digits.length > 0) {
        groups.push(next);
        if (endInCardNumber(groups)) return true;
        // No number reaches back over more groups than it has digits.
        if (groups.length === MAX_CARD_DIGITS) groups.shift();
        next = { digits: [], joint: 0, after_plus: false };
      }
      next.after_plus = sign === PLUS;
      if (groups.length === 0) continue;
      if (sign !== OTHER) next.joint |= sign;
      else {
        groups = [];
        next.joint = 0;
      }
    }
  }
  return next.digits.length > 0 && endInCardNumber([...groups, next]);
}

/**
 * Whether the last groups together, however many of them, may be a card number. Extends the result
 * for fewer groups to more groups, because in a hostile text 19 numbers end at each digit.
 */
function endInCardNumber(groups: readonly Group[]): boolean {
  const last = groups.length - 1;
  /** The joint of all groups after the first, without plain separators. */
  let joint: number | "none" | "several" = "none";
  /** The length of all groups between the first and the last. */
  let inner: number | "none" | "several" = "none";
  let sum = 0;
  let length = 0;
  for (let first = last; first >= 0; first--) {
    const { digits, after_plus } = groups[first]!;
    for (let at = digits.length - 1; at >= 0; at--) {
      if (++length > MAX_CARD_DIGITS) return false;
      sum += luhnValue(digits[at]!, length % 2 === 0);
    }
    if (first < last) joint = withSame(joint, groups[first + 1]!.joint & ~PLAIN);
    if (first < last - 1) inner = withSame(inner, groups[first + 1]!.digits.length);
    if (length < MIN_CARD_DIGITS || sum % 10 !== 0) continue;
    // A telephone number (E.164). Only old Visa cards have so few digits.
    if (after_plus && length === MIN_CARD_DIGITS) continue;
    const lead = digits[0]! * 10 + (digits[1] ?? groups[first + 1]!.digits[0]!);
    if (first === last) {
      // Unix times in milliseconds and finer begin with 1, dates of this century with 20.
      if (lead < 10 || lead > 20) return true;
      continue;
    }
    if (!leadsPaymentCard(lead, length)) continue;
    if (joint !== "several" && (first === 0 || joint === 0)) return true;
    // Lists of amounts, coordinates and addresses have other separators between uneven groups.
    const even = digits.length;
    const end = groups[last]!.digits.length;
    // The printed groups of American Express and Diners Club.
    if (first === last - 2 && even === 4 && inner === 6 && (end === 4 || end === 5)) return true;
    const is_even = (inner === "none" || inner === even) && end <= even;
    if (is_even && (joint !== "several" || even > 2)) return true;
  }
  return false;
}

/** The common value so far, after one more. */
function withSame<T>(so_far: T | "none" | "several", one_more: T): T | "several" {
  return so_far === "none" || so_far === one_more ? one_more : "several";
}

/** First digits of payment cards; Mastercard's numbers that begin with 2 have 16 digits. */
function leadsPaymentCard(lead: number, length: number): boolean {
  return (lead >= 30 && lead <= 69) || lead === 81 ||
    (lead >= 22 && lead <= 27 && length === 16);
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

/**
 * The signs of a character: digits, separators and other characters, as numbers. A character whose
 * compatibility form (NFKC) has several characters has a sign for each: "½" has three. The text is
 * not normalized as a whole, because that takes quadratic time on a run of combining marks.
 */
function signsOf(code: number): readonly number[] {
  let signs = SIGNS.get(code);
  if (signs === undefined) {
    signs = Array.from(String.fromCodePoint(code).normalize("NFKC"), signOf);
    if (SIGNS.size >= SIGNS_MAX) SIGNS.clear();
    SIGNS.set(code, signs);
  }
  return signs;
}

/** Size of the cache of signs. */
const SIGNS_MAX = 4_096;
const SIGNS = new Map<number, readonly number[]>();

// Signs other than the digits 0 to 9. Separators are bits.
const INVISIBLE = 10;
const OTHER = 11;
const PLAIN = 16;
/** Separators other than spaces and dashes, in the order of their bits. */
const OTHER_SEPARATORS = "+._/,:|";
const PLUS = separatorSign("+");

function separatorSign(separator: string): number {
  return PLAIN << (1 + OTHER_SEPARATORS.indexOf(separator));
}

function signOf(character: string): number {
  const digit = digitValue(character);
  if (digit !== null) return digit;
  if (/^[\p{Cf}\p{M}]$/u.test(character)) return INVISIBLE;
  // The usual separators of a card number: spaces and dashes.
  if (/^[\s\p{Pd}\u2212]$/u.test(character)) return PLAIN;
  return OTHER_SEPARATORS.includes(character) ? separatorSign(character) : OTHER;
}

/** The value of a decimal digit of any script, null for every other character. */
function digitValue(character: string): number | null {
  const code = character.codePointAt(0)!;
  if (code < 0x80) return code >= 0x30 && code <= 0x39 ? code - 0x30 : null;
  if (!DIGIT.test(character)) return null;
  // Unicode keeps the ten digits of a script together in ascending order: count those before.
  let value = 0;
  while (value < 9 && DIGIT.test(String.fromCodePoint(code - value - 1))) value++;
  return value;
}

const DIGIT = /^\p{Nd}$/u;
