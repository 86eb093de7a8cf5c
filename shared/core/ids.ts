/**
 * Identifiers: a prefix and 26 lower-case characters that sort by time (contract §2).
 *
 * The suffix is 9 characters of milliseconds (45 bits, until the year 3084), 16 random characters
 * (80 bits) and one ordinal, in Crockford's base 32. All ids of one change share time and
 * randomness and differ in the ordinal, so the events and ledger transactions of one request sort in
 * the order in which they were made. The ids of ledger entries are not minted: the database derives
 * them from their transaction's id, with the ordinals that follow it.
 */

/** Prefix of each kind of resource (contract §2). */
export type IdPrefix =
  | "pay_"
  | "re_"
  | "tr_"
  | "evt_"
  | "whe_"
  | "whd_"
  | "le_"
  | "txn_"
  | "key_"
  | "req_"
  | "env_";

/**
 * Gives the next id of one change.
 * @param reserved how many ordinals after the id's stay unused, for ids that are derived from it; the
 *   id's ordinal and these are always of the same randomness
 */
export type IdMint = (prefix: IdPrefix, reserved?: number) => string;

/** Fills an array with random bytes; `crypto.getRandomValues` outside of tests. */
export type RandomSource = (bytes: Uint8Array) => Uint8Array;

/** Crockford's base 32 in lower case: sorts as its values do. */
const ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz";
const TIME_LENGTH = 9;
/** Greatest time that an id holds; a later bound of a list means the same as this one. */
const MAX_TIME_MS = 32 ** TIME_LENGTH - 1;
const RANDOM_LENGTH = 16;
const SUFFIX = "[0-9a-hjkmnp-tv-z]{26}";

/** The platform's secure random source, read in blocks because many small reads are slow. */
export const systemRandom: RandomSource = blockwise(4096);

/** Starts the ids of one change, made at `at_ms`. */
export function idMint(at_ms: number, random: RandomSource = systemRandom): IdMint {
  const time = encodeTime(at_ms);
  let shared = time + randomCharacters(random);
  let ordinal = 0;
  return (prefix, reserved = 0) => {
    if (ordinal + reserved >= ALPHABET.length) {
      shared = time + randomCharacters(random);
      ordinal = 0;
    }
    const id = prefix + shared + ALPHABET[ordinal];
    ordinal += 1 + reserved;
    return id;
  };
}

/** The least id of a kind made at or after `at_ms`: turns a time filter into a key range. */
export function idFloor(prefix: IdPrefix, at_ms: number): string {
  return prefix + encodeTime(at_ms) + "0".repeat(RANDOM_LENGTH + 1);
}

/** The form of an id of this kind. */
export function idPattern(prefix: IdPrefix): RegExp {
  return new RegExp(`^${prefix}${SUFFIX}$`);
}

/** Whether the text has the form of an id of this kind. */
export function isId(prefix: IdPrefix, text: string): boolean {
  return idPattern(prefix).test(text);
}

function encodeTime(at_ms: number): string {
  let rest = Math.min(Math.max(0, Math.trunc(at_ms)), MAX_TIME_MS);
  let text = "";
  for (let i = 0; i < TIME_LENGTH; i++) {
    text = ALPHABET[rest % 32] + text;
    rest = Math.floor(rest / 32);
  }
  return text;
}

function randomCharacters(random: RandomSource): string {
  const bytes = random(new Uint8Array(RANDOM_LENGTH));
  let text = "";
  for (const byte of bytes) text += ALPHABET[byte & 31];
  return text;
}

/** Random bytes as lower-case hex. */
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
