/**
 * Identifiers: a prefix and 26 lower-case characters that sort by time (contract §2).
 *
 * The suffix is 9 characters of milliseconds (45 bits, until the year 3084), 16 random characters
 * (80 bits) and one ordinal, in Crockford's base 32. The ids of one change have the same time and
 * random characters and differ in the ordinal, so the events and ledger transactions of a request
 * sort in the order in which they were made. The database derives the ids of ledger entries from
 * the id of their ledger transaction, with the ordinals that follow it.
 */

/** Prefix of each kind of resource (contract §2). */
export type IdPrefix =
  | "bf_"
  | "pac_"
  | "pay_"
  | "ins_"
  | "chk_"
  | "pc_"
  | "re_"
  | "dp_"
  | "tr_"
  | "evt_"
  | "whe_"
  | "whd_"
  | "le_"
  | "txn_"
  | "key_"
  | "req_"
  | "flt_"
  | "env_";

/**
 * Makes the next id of one change.
 * @param reserved number of ordinals to leave free after this id, for ids that are derived from it;
 *   all of them share the random characters of this id
 */
export type IdGenerator = (prefix: IdPrefix, reserved?: number) => string;

/** Fills an array with random bytes and returns it. Tests pass a source of their own. */
export type RandomSource = (bytes: Uint8Array) => Uint8Array;

/** Crockford's base 32 in lower case. Its characters sort in the order of their values. */
export const ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz";
const CODES = Array.from(ALPHABET, (character) => character.charCodeAt(0));
const TIME_LENGTH = 9;
/** Latest time that an id can hold. Later times count as this one. */
const MAX_TIME_MS = 32 ** TIME_LENGTH - 1;
const RANDOM_LENGTH = 16;
const SUFFIX = "[0-9a-hjkmnp-tv-z]{26}";

/** The platform's secure random source. It reads blocks, because many small reads are slow. */
export const systemRandom: RandomSource = blockwise(4096);

/**
 * Returns the generator of the ids of one change, which was made at `at_ms`.
 * @param order_ms the real time, if `at_ms` is that of a sandbox whose clock can stand: it takes
 *   the place of 9 random characters, so that ids of the same `at_ms` sort in the order of the
 *   changes
 */
export function idGenerator(
  at_ms: number,
  random: RandomSource = systemRandom,
  order_ms?: number,
): IdGenerator {
  const order = order_ms === undefined ? "" : encodeTime(order_ms);
  const time = encodeTime(at_ms) + order;
  let shared = time + randomCharacters(random).slice(order.length);
  let ordinal = 0;
  return (prefix, reserved = 0) => {
    if (ordinal + reserved >= ALPHABET.length) {
      shared = time + randomCharacters(random).slice(order.length);
      ordinal = 0;
    }
    const id = prefix + shared + ALPHABET[ordinal];
    ordinal += 1 + reserved;
    return id;
  };
}

/** Returns the smallest id of a kind at `at_ms`, which turns a time filter into a key range. */
export function idFloor(prefix: IdPrefix, at_ms: number): string {
  return prefix + encodeTime(at_ms) + "0".repeat(RANDOM_LENGTH + 1);
}

/** Returns the pattern that every id of this kind matches. */
export function idPattern(prefix: IdPrefix): RegExp {
  return new RegExp(`^${prefix}${SUFFIX}$`);
}

export function isId(prefix: IdPrefix, text: string): boolean {
  return idPattern(prefix).test(text);
}

/** The last encoded time: a request makes several ids at the same time. */
let newest = { at_ms: NaN, text: "" };

function encodeTime(at_ms: number): string {
  if (newest.at_ms === at_ms) return newest.text;
  const codes = new Uint8Array(TIME_LENGTH);
  let rest = Math.min(Math.max(0, Math.trunc(at_ms)), MAX_TIME_MS);
  for (let i = TIME_LENGTH - 1; i >= 0; i--) {
    codes[i] = CODES[rest % 32]!;
    rest = Math.floor(rest / 32);
  }
  newest = { at_ms, text: textOf(codes) };
  return newest.text;
}

/** Characters of the system's source, made for 64 ids at once, and those that ids have. */
const made = { text: "", used: 0 };

function randomCharacters(random: RandomSource): string {
  if (random !== systemRandom) return charactersOf(random(new Uint8Array(RANDOM_LENGTH)));
  if (made.used === made.text.length) {
    made.text = charactersOf(random(new Uint8Array(64 * RANDOM_LENGTH)));
    made.used = 0;
  }
  return made.text.slice(made.used, made.used += RANDOM_LENGTH);
}

function charactersOf(codes: Uint8Array): string {
  for (let i = 0; i < codes.length; i++) codes[i] = CODES[codes[i]! & 31]!;
  // One flat text: concatenations would leave as many objects behind.
  return textOf(codes);
}

function textOf(codes: Uint8Array): string {
  return String.fromCharCode.apply(null, codes as unknown as number[]);
}

/** Returns random bytes as lower-case hex. */
export function randomHex(byte_count: number, random: RandomSource): string {
  const bytes = random(new Uint8Array(byte_count));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function blockwise(size: number): RandomSource {
  const block = new Uint8Array(size);
  let used = size;
  return (bytes) => {
    if (used + bytes.length > size) {
      crypto.getRandomValues(block);
      used = 0;
    }
    bytes.set(block.subarray(used, used += bytes.length));
    return bytes;
  };
}
