/**
 * Card numbers: normalization, check digit, brand, and a search for them in free text.
 *
 * The list of test cards decides which numbers are accepted (`providers/test_values.ts`). This
 * module stores and logs nothing. Sources: ISO/IEC 7812 (length, check digit), contract §2,
 * security §2, card numbers.
 */

/** Shortest and longest card number (ISO/IEC 7812). */
const MIN_CARD_DIGITS = 13;
const MAX_CARD_DIGITS = 19;

/** Ranges of the first six digits of a number, with the brand. The first range that fits wins. */
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

/** Removes white space and hyphens, the usual separators of card numbers. */
export function normalizeCardNumber(text: string): string {
  return text.replace(/[\s-]/g, "");
}

/** Reports whether the text is ASCII digits and the last one is the correct check digit. */
export function passesLuhn(digits: string): boolean {
  return /^[0-9]+$/.test(digits) && luhnSum(Array.from(digits, Number)) % 10 === 0;
}

/** Returns the brand of a number without separators, from its first six digits. */
export function cardBrand(digits: string): CardBrand {
  if (!/^[0-9]{6}/.test(digits)) return "unknown";
  const lead = Number(digits.slice(0, 6));
  return BRAND_RANGES.find(({ from, to }) => from <= lead && lead <= to)?.brand ?? "unknown";
}

/**
 * Reports whether free text may contain a card number: 13 to 19 digits with a valid check digit
 * (docs/decisions/0017-card-numbers-in-free-text.md).
 *
 * A run of digits counts unless it begins like a time. Several groups of digits count if they begin
 * like a payment card. Any separators may stand between groups, and any consecutive groups may be
 * the number ("4242 4242 4242 4242 123" is a number with a CVC). Part of a group never counts,
 * because a long run of digits nearly always contains a valid part. Digits of every script and
 * percent-encoded digits count. The search ignores invisible characters, UUIDs, hex ids and the ids
 * of this API, and takes linear time.
 */
export function containsCardNumber(text: string): boolean {
  if (!mayHoldNumber(text)) return false;
  const rest = withoutIds(text);
  if (rest !== text && !mayHoldNumber(rest)) return false;
  if (holdsNumber(rest)) return true;
  // The plain text comes first: decoding "%4242…" would destroy a number in it.
  for (let at = 0, encoded = rest; at < MAX_ENCODINGS && encoded.includes("%"); at++) {
    const decoded = decodePercents(encoded);
    if (decoded === encoded) return false;
    if (holdsNumber(decoded)) return true;
    encoded = decoded;
  }
  return false;
}

/** Rounds of percent-decoding that the search tries: `%2520` is a space that was encoded twice. */
const MAX_ENCODINGS = 3;

const UUID = /(?<![0-9a-z])[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![0-9a-z])/gi;
/** Hex ids of 96 bits (object ids), 128 (MD5), 160 (SHA-1), 256 (SHA-256) and 512 (SHA-512). */
const HEX_ID = /(?<![0-9a-z])(?:(?:[0-9a-f]{8}){3,5}|[0-9a-f]{64}|[0-9a-f]{128})(?![0-9a-z])/gi;

/** Ids of this API. With the clock of a sandbox they have long runs of digits. */
const OWN_ID = /(?<![0-9a-z_])[a-z]{2,4}_[0-9a-hjkmnp-tv-z]{26}(?![0-9a-z])/g;

/** Length of the shortest of these ids. */
const MIN_ID_CHARACTERS = 24;

/** Replaces ids whose characters contain a letter: some look like a card number, or like an IBAN. */
export function withoutIds(text: string): string {
  if (text.length < MIN_ID_CHARACTERS) return text;
  const replaced = (id: string) => /[a-f]/i.test(id) ? "x" : id;
  const own = (id: string) => /[a-z]/.test(id.slice(-26)) ? "x" : id;
  return text.replace(UUID, replaced).replace(HEX_ID, replaced).replace(OWN_ID, own);
}

/** Reports whether a text has enough digits. Text outside ASCII always passes. */
function mayHoldNumber(text: string): boolean {
  let digits = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code >= 0x80) return true;
    // Percent-encoded text passes as well: an encoded digit contains at least one ASCII digit.
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

/** A run of digits, and the separators between it and the previous group. */
interface Group {
  digits: number[];
  /** The kinds of separators before this group, as bits; 0 for the first group. */
  joint: number;
  /** True if a plus sign stands directly before the digits. */
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
        // One digit more than the longest number shows that the group is too long.
        if (next.digits.length <= MAX_CARD_DIGITS) next.digits.push(sign);
        continue;
      }
      if (sign === INVISIBLE) continue;
      if (next.digits.length > 0) {
        groups.push(next);
        if (endInCardNumber(groups)) return true;
        // Each group has at least one digit, so a number spans at most 19 groups.
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
 * Reports whether the last group, or the last few groups together, may be a card number. One pass
 * from the last group backwards adds up the check digit, so the work for each digit is bounded.
 */
function endInCardNumber(groups: readonly Group[]): boolean {
  const last = groups.length - 1;
  /** The separators that all groups after the first have in common, without spaces and dashes. */
  let joint: number | "none" | "several" = "none";
  /** The length that all groups between the first and the last have in common. */
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
    // "+" and 13 digits is a telephone number (E.164). Only old Visa cards have 13 digits.
    if (after_plus && length === MIN_CARD_DIGITS) continue;
    const lead = digits[0]! * 10 + (digits[1] ?? groups[first + 1]!.digits[0]!);
    if (first === last) {
      // Unix times in milliseconds or finer units begin with 1, dates of this century with 20.
      if (lead < 10 || lead > 20) return true;
      continue;
    }
    if (!leadsPaymentCard(lead, length)) continue;
    if (joint !== "several" && (first === 0 || joint === 0)) return true;
    // From here on the groups must be even. Lists of amounts, coordinates and addresses have
    // separators other than spaces and dashes between uneven groups.
    const even = digits.length;
    const end = groups[last]!.digits.length;
    // The printed groups of American Express and Diners Club.
    if (first === last - 2 && even === 4 && inner === 6 && (end === 4 || end === 5)) return true;
    const is_even = (inner === "none" || inner === even) && end <= even;
    if (is_even && (joint !== "several" || even > 2)) return true;
  }
  return false;
}

/** Adds one value: the result is the value that all have in common, or "several". */
function withSame<T>(so_far: T | "none" | "several", one_more: T): T | "several" {
  return so_far === "none" || so_far === one_more ? one_more : "several";
}

/** Tells if the first two digits are those of a payment card. Mastercard's 2… have 16 digits. */
function leadsPaymentCard(lead: number, length: number): boolean {
  return (lead >= 30 && lead <= 69) || lead === 81 ||
    (lead >= 22 && lead <= 27 && length === 16);
}

function luhnSum(digits: readonly number[]): number {
  const { length } = digits;
  return digits.reduce((sum, digit, at) => sum + luhnValue(digit, (length - at) % 2 === 0), 0);
}

/** ISO/IEC 7812-1 annex B: doubles every second digit from the right and adds its digits. */
function luhnValue(digit: number, is_doubled: boolean): number {
  if (!is_doubled) return digit;
  return digit > 4 ? digit * 2 - 9 : digit * 2;
}

/**
 * Returns the signs of a character: numbers for digits, separators and other characters. The
 * compatibility form (NFKC) of one character can have several: "½" has three signs. The search
 * never normalizes a whole text, because a run of combining marks makes that take quadratic time.
 */
function signsOf(code: number): readonly number[] {
  if (isOfLargeScript(code)) return OTHER_ALONE;
  let signs = SIGNS.get(code);
  if (signs === undefined) {
    signs = Array.from(String.fromCodePoint(code).normalize("NFKC"), signOf);
    if (SIGNS.size >= SIGNS_MAX) SIGNS.clear();
    SIGNS.set(code, signs);
  }
  return signs;
}

/**
 * Reports whether a character is an ideograph, a Hangul syllable or private: a text can have more
 * of them than the cache holds. None is a digit, a separator or invisible, in no form of it.
 */
function isOfLargeScript(code: number): boolean {
  return code >= 0x3400 && code <= 0x9fff || code >= 0xac00 && code <= 0xf8ff ||
    code >= 0x20000 && code <= 0xdffff;
}

/** Characters in the cache of signs. */
const SIGNS_MAX = 4_096;
const SIGNS = new Map<number, readonly number[]>();

// Signs other than the digits 0 to 9. Separators are bits.
const INVISIBLE = 10;
const OTHER = 11;
const OTHER_ALONE: readonly number[] = [OTHER];
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

/** Returns the value of a decimal digit of any script, or null for any other character. */
function digitValue(character: string): number | null {
  const code = character.codePointAt(0)!;
  if (code < 0x80) return code >= 0x30 && code <= 0x39 ? code - 0x30 : null;
  if (!DIGIT.test(character)) return null;
  // Unicode places the ten digits of a script next to each other in ascending order.
  let value = 0;
  while (value < 9 && DIGIT.test(String.fromCodePoint(code - value - 1))) value++;
  return value;
}

const DIGIT = /^\p{Nd}$/u;
