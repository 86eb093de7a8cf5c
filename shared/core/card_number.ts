/**
 * Card numbers: normalization, check digit, brand, and a search for them in free text.
 *
 * The list of test cards decides which numbers are accepted (`providers/test_values.ts`). This
 * module stores and logs nothing. Sources: ISO/IEC 7812 (length, check digit), contract §2,
 * security §2, card numbers.
 */

/** Shortest and longest card number (ISO/IEC 7812). */
export const MIN_CARD_DIGITS = 13;
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

/** Returns the brand of a number without separators, from its first six digits. */
export function cardBrand(digits: string): CardBrand {
  if (!/^[0-9]{6}/.test(digits)) return "unknown";
  const lead = Number(digits.slice(0, 6));
  return BRAND_RANGES.find(({ from, to }) => from <= lead && lead <= to)?.brand ?? "unknown";
}

/**
 * Reports whether free text may contain a card number: 13 to 19 digits with a valid check digit
 * (docs/decisions/0014-what-a-request-may-say.md).
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

/** A text that is one UUID. */
const ONE_UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const UUID = /(?<![0-9a-z])[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![0-9a-z])/gi;
/**
 * Hex ids of 96 bits (object ids), 128 (MD5), 160 (SHA-1), 256 (SHA-256) and 512 (SHA-512), with
 * `0x` wallets and hashes of transactions.
 */
const HEX_ID =
  /(?<![0-9a-z])(?:0x)?(?:(?:[0-9a-f]{8}){3,5}|[0-9a-f]{64}|[0-9a-f]{128})(?![0-9a-z])/gi;

/** Ids of this API. With the clock of a sandbox they have long runs of digits. */
const OWN_ID = /(?<![0-9a-z_])[a-z]{2,4}_[0-9a-hjkmnp-tv-z]{26}(?![0-9a-z])/g;

/** Length of the shortest of these ids. */
const MIN_ID_CHARACTERS = 24;

/** The last text of `withoutIds`, and its result: several searches ask about the same text. */
let last = { text: "", rest: "" };

/** Replaces ids whose characters contain a letter: some look like a card number or an IBAN. */
export function withoutIds(text: string): string {
  if (text.length < MIN_ID_CHARACTERS) return text;
  if (text === last.text) return last.rest;
  const replaced = (id: string) => /[a-f]/i.test(id) ? "x" : id;
  const own = (id: string) => /[a-z]/.test(id.slice(-26)) ? "x" : id;
  // Most idempotency keys.
  const rest = ONE_UUID.test(text)
    ? replaced(text)
    : text.replace(UUID, replaced).replace(HEX_ID, replaced).replace(OWN_ID, own);
  last = { text, rest };
  return rest;
}

/** Reports whether a text has enough digits. Text outside ASCII always passes. */
export function mayHoldNumber(text: string): boolean {
  let digits = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code >= 0x80) return true;
    // Percent-encoded text passes as well: an encoded digit contains at least one ASCII digit.
    if (code >= 0x30 && code <= 0x39 && ++digits === MIN_CARD_DIGITS) return true;
  }
  return false;
}

/** Decodes percent-encoded characters; everything else stays. One pass over the bytes. */
function decodePercents(text: string): string {
  const bytes = UTF_8_ENCODER.encode(text);
  let length = 0;
  for (let at = 0; at < bytes.length; at++, length++) {
    const high = bytes[at] === PERCENT ? hexValue(bytes[at + 1]) : -1;
    const low = high < 0 ? -1 : hexValue(bytes[at + 2]);
    bytes[length] = low < 0 ? bytes[at]! : high * 16 + low;
    if (low >= 0) at += 2;
  }
  return length === bytes.length ? text : UTF_8.decode(bytes.subarray(0, length));
}

const UTF_8 = new TextDecoder();
const UTF_8_ENCODER = new TextEncoder();
const PERCENT = 0x25;

function hexValue(code = 0): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const letter = code | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1;
}

/** Groups that the search keeps: a power of two, and more than the longest number has. */
const KEPT_GROUPS = 32;
/** Digits of a group that it keeps. One more than the longest number shows that it is too long. */
const KEPT_DIGITS = MAX_CARD_DIGITS + 1;

function holdsNumber(text: string): boolean {
  groups.clear();
  const known = text.replace(LIKE_LETTERS, "x");
  for (let at = 0; at < known.length; at++) {
    const code = known.codePointAt(at)!;
    if (code < 0x80) {
      if (groups.take(ASCII_SIGNS[code]!)) return true;
      continue;
    }
    if (code > 0xffff) at++;
    for (const sign of signsOf(code)) if (groups.take(sign)) return true;
  }
  return groups.end();
}

/**
 * The last groups of digits of a text, and the separators between them. Typed arrays in a ring: a
 * text can have a group at every second character, and the search looks back at each.
 */
class Groups {
  readonly #digits = new Uint8Array(KEPT_GROUPS * KEPT_DIGITS);
  readonly #lengths = new Uint8Array(KEPT_GROUPS);
  /** The kinds of separators before each group, as bits; 0 for the first group. */
  readonly #joints = new Uint16Array(KEPT_GROUPS);
  /** 1 if a plus sign stands directly before the digits. */
  readonly #pluses = new Uint8Array(KEPT_GROUPS);
  /** The first group that may belong to a number, and the one that is read now. */
  #first = 0;
  #last = 0;

  /** Takes the sign of a character. Returns true if a card number ends before it. */
  take(sign: number): boolean {
    const slot = this.#last % KEPT_GROUPS;
    if (sign <= 9) {
      const length = this.#lengths[slot]!;
      if (length === KEPT_DIGITS) return false;
      this.#digits[slot * KEPT_DIGITS + length] = sign;
      this.#lengths[slot] = length + 1;
      return false;
    }
    if (sign === INVISIBLE) return false;
    if (this.#lengths[slot]! > 0) {
      if (this.end()) return true;
      this.#begin(this.#last + 1);
      // Each group has at least one digit, so a number spans at most 19 groups.
      if (this.#last - this.#first === MAX_CARD_DIGITS) this.#first++;
    }
    const next = this.#last % KEPT_GROUPS;
    this.#pluses[next] = sign === PLUS ? 1 : 0;
    if (this.#first === this.#last) return false;
    if (sign !== OTHER) this.#joints[next]! |= sign;
    else {
      this.#first = this.#last;
      this.#joints[next] = 0;
    }
    return false;
  }

  /**
   * Reports whether the last group, or the last few groups together, may be a card number. One pass
   * from the last group backwards adds up the check digit, so the work for each digit is bounded.
   */
  end(): boolean {
    const [digits, lengths] = [this.#digits, this.#lengths];
    const [joints, pluses] = [this.#joints, this.#pluses];
    const last = this.#last;
    const earliest = this.#first;
    const end = lengths[last % KEPT_GROUPS]!;
    if (end === 0) return false;
    /** The separators that all groups after the first have in common, without spaces and dashes. */
    let joint = NONE;
    /** The length that all groups between the first and the last have in common. */
    let inner = NONE;
    let sum = 0;
    let length = 0;
    for (let first = last; first >= earliest; first--) {
      const slot = first % KEPT_GROUPS;
      const after = (first + 1) % KEPT_GROUPS;
      const start = slot * KEPT_DIGITS;
      const even = lengths[slot]!;
      for (let at = start + even - 1; at >= start; at--) {
        if (++length > MAX_CARD_DIGITS) return false;
        sum += luhnValue(digits[at]!, length % 2 === 0);
      }
      if (first < last) joint = withSame(joint, joints[after]! & ~PLAIN);
      if (first < last - 1) inner = withSame(inner, lengths[after]!);
      if (length < MIN_CARD_DIGITS || sum % 10 !== 0) continue;
      // "+" and 13 digits is a telephone number (E.164). Only old Visa cards have 13 digits.
      if (pluses[slot] === 1 && length === MIN_CARD_DIGITS) continue;
      const second = even > 1 ? digits[start + 1]! : digits[after * KEPT_DIGITS]!;
      const lead = digits[start]! * 10 + second;
      if (first === last) {
        // Unix times in milliseconds or finer units begin with 1, dates of this century with 20.
        if (lead < 10 || lead > 20) return true;
        continue;
      }
      if (!leadsPaymentCard(lead, length)) continue;
      if (joint !== SEVERAL && (first === earliest || joint === 0)) return true;
      // From here on the groups must be even. Lists of amounts, coordinates and addresses have
      // separators other than spaces and dashes between uneven groups.
      // The printed groups of American Express and Diners Club.
      if (first === last - 2 && even === 4 && inner === 6 && (end === 4 || end === 5)) return true;
      const is_even = (inner === NONE || inner === even) && end <= even;
      if (is_even && (joint !== SEVERAL || even > 2)) return true;
    }
    return false;
  }

  /** Forgets the last text. */
  clear(): void {
    this.#first = 0;
    this.#begin(0);
  }

  #begin(group: number): void {
    const slot = group % KEPT_GROUPS;
    this.#last = group;
    this.#lengths[slot] = 0;
    this.#joints[slot] = 0;
    this.#pluses[slot] = 0;
  }
}

/** One for all texts, because its arrays take longer to make than a short text to search. */
const groups = new Groups();

/** Instead of a value that all have in common: there is no value yet, or they have several. */
const NONE = -1;
const SEVERAL = -2;

/** Adds one value: the result is the value that all have in common, or `SEVERAL`. */
function withSame(so_far: number, one_more: number): number {
  return so_far === NONE || so_far === one_more ? one_more : SEVERAL;
}

/** Tells if the first two digits are those of a payment card. Mastercard's 2… have 16 digits. */
function leadsPaymentCard(lead: number, length: number): boolean {
  return (lead >= 30 && lead <= 69) || lead === 81 ||
    (lead >= 22 && lead <= 27 && length === 16);
}

/** ISO/IEC 7812-1 annex B: doubles every second digit from the right and adds its digits. */
function luhnValue(digit: number, is_doubled: boolean): number {
  if (!is_doubled) return digit;
  return digit > 4 ? digit * 2 - 9 : digit * 2;
}

/**
 * Characters outside ASCII whose compatibility form (NFKC) has no digit and is neither invisible
 * nor all separators. They end a number as a letter does. The single ones are symbols with digits
 * (`㋀` is 1 and an ideograph), spaces with an accent, and separators of other widths.
 */
export const LIKE_LETTERS = new RegExp(
  String.raw`[^\x00-\x7f\p{Nd}\p{No}\p{Cf}\p{M}\p{Z}\p{Pd}\s\u2212` +
    String.raw`\xa8\xaf\xb4\xb8\u02d8-\u02dd\u037a\u0384\u0385\u1fbd\u1fbf-\u1fc1\u1fcd-\u1fcf` +
    String.raw`\u1fdd-\u1fdf\u1fed\u1fee\u1ffd\u1ffe\u2017\u2024-\u2026\u203e\u207a\u207b\u208a` +
    String.raw`\u208b\u309b\u309c\u32c0-\u32cb\u3358-\u3370\u3378\u3379\u339f-\u33a6\u33a8\u33af` +
    String.raw`\u33e0-\u33fe\ufb29\ufc5e-\ufc63\ufe10\ufe13\ufe19\ufe30\ufe33\ufe34\ufe49-\ufe50` +
    String.raw`\ufe52\ufe55\ufe62\ufe70-\ufe7e\uff0b\uff0c\uff0e\uff0f\uff1a\uff3f\uff5c\uff9e` +
    String.raw`\uff9f\uffe3]+`,
  "gu",
);

/**
 * Returns the signs of a character: numbers for digits, separators and other characters. The
 * compatibility form of one character can have several: "½" has three signs. The search never
 * normalizes a whole text, because a run of combining marks makes that take quadratic time.
 */
function signsOf(code: number): readonly number[] {
  let signs = SIGNS.get(code);
  if (signs === undefined) {
    signs = Array.from(String.fromCodePoint(code).normalize("NFKC"), signOf);
    SIGNS.set(code, signs);
  }
  return signs;
}

/** The signs of characters that are not `LIKE_LETTERS`: some 5 000 in Unicode. */
const SIGNS = new Map<number, readonly number[]>();

// Signs other than the digits 0 to 9. Separators are bits.
const INVISIBLE = 10;
const OTHER = 11;
const PLAIN = 16;
/** Separators other than spaces and dashes, in the order of their bits. */
const OTHER_SEPARATORS = "+._/,:|";
const PLUS = separatorSign("+");

const ASCII_SIGNS = Array.from({ length: 0x80 }, (_, code) => signOf(String.fromCharCode(code)));

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
