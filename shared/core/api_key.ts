/**
 * The text of an API key: `<prefix>_<test|live>_`, 43 base62 characters that hold 256 random bits,
 * and 6 base62 characters of CRC-32 over everything before them (contract §5).
 *
 * The checksum lets a mistyped or truncated key be refused, and a leaked one be recognised, without
 * asking the database. It protects nothing: only the hash is compared, and only the hash is kept.
 */

import { createHash } from "node:crypto";
import { crc32 } from "node:zlib";
import { type RandomSource, systemRandom } from "./ids.ts";

/** Whether a key moves test money or real money. */
export type KeyMode = "test" | "live";

/** What is known of a key from its text alone; nothing here opens anything. */
interface ParsedApiKey {
  mode: KeyMode;
  /** What may be shown of the beginning: `sk_test_`. */
  prefix: string;
  /** The last four characters, which are the end of the checksum. */
  last_four: string;
  /** SHA-256 of the whole text, lower-case hex: the form in which keys are stored and compared. */
  hash: string;
}

/** Prefix of a key when the operator names none (contract §5). */
export const DEFAULT_KEY_PREFIX = "sk";

/**
 * The test key that `supabase/seed.sql` publishes for local stacks. Everybody knows it, so it opens
 * nothing where the service is served over https.
 */
export const PUBLISHED_TEST_KEY = "sk_test_PublishedKeyForLocalDevelopmentOnly000000003aKpBk";

/** Longest text of a key: a 16-character prefix. Anything longer is refused unread. */
const MAX_API_KEY_LENGTH = 71;

const BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const SECRET_BYTES = 32;
/** 62^43 is the least power of 62 beyond 2^256. */
const SECRET_LENGTH = 43;
/** 62^6 is the least power of 62 beyond 2^32. */
const CHECKSUM_LENGTH = 6;
const PREFIX = /^[a-z][a-z0-9]{0,15}$/;
const KEY = /^([a-z][a-z0-9]{0,15}_(test|live)_)[0-9A-Za-z]{49}$/;

/**
 * Makes a new key.
 *
 * @param prefix a lower-case letter and up to 15 lower-case letters and digits
 * @throws {RangeError} if the prefix has another form
 */
export function generateApiKey(
  mode: KeyMode,
  prefix: string = DEFAULT_KEY_PREFIX,
  random: RandomSource = systemRandom,
): string {
  if (!PREFIX.test(prefix)) {
    throw new RangeError(`cannot make a key with prefix "${prefix}": must match ${PREFIX.source}`);
  }
  let secret = 0n;
  for (const byte of random(new Uint8Array(SECRET_BYTES))) secret = secret << 8n | BigInt(byte);
  const body = `${prefix}_${mode}_${encodeBase62(secret, SECRET_LENGTH)}`;
  return body + checksum(body);
}

/**
 * Reads the text of a key; null for every text that is not one, its checksum included.
 *
 * Takes no notice of whether the key exists: that is decided by its hash.
 */
export function parseApiKey(text: string): ParsedApiKey | null {
  if (text.length > MAX_API_KEY_LENGTH) return null;
  const match = KEY.exec(text);
  if (match === null) return null;
  if (checksum(text.slice(0, -CHECKSUM_LENGTH)) !== text.slice(-CHECKSUM_LENGTH)) return null;
  return {
    mode: match[2] as KeyMode,
    prefix: match[1]!,
    last_four: text.slice(-4),
    hash: createHash("sha256").update(text).digest("hex"),
  };
}

function checksum(body: string): string {
  // Older runtimes give CRC-32 as a signed number; the shift makes it unsigned on all of them.
  return encodeBase62(BigInt(crc32(body) >>> 0), CHECKSUM_LENGTH);
}

/** The number in base 62, padded with zeros on the left to the length. */
function encodeBase62(value: bigint, length: number): string {
  let text = "";
  for (let rest = value; rest > 0n; rest /= 62n) text = BASE62[Number(rest % 62n)] + text;
  return text.padStart(length, "0");
}
