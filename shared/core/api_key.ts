/**
 * The text of an API key: `<prefix>_<test|live>_`, 43 base62 characters that hold 256 random bits,
 * and 6 base62 characters of CRC-32 over everything before them (contract §5).
 *
 * The checksum lets the service refuse a mistyped key, and lets a scanner recognise a leaked one,
 * without a query. It is no protection: the database stores and compares SHA-256 hashes only.
 */

import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { crc32 } from "node:zlib";
import { type RandomSource, systemRandom } from "./ids.ts";

/** Mode of a key: `test` keys move test money, `live` keys real money. */
export type KeyMode = "test" | "live";

/** The parts of a well-formed key. The key need not exist. */
interface ParsedApiKey {
  mode: KeyMode;
  /** The beginning, which may be shown: `sk_test_`. */
  prefix: string;
  /** The last four characters, which may be shown. They are the end of the checksum. */
  last_four: string;
  /** SHA-256 of the whole text, lower-case hex: the form in which keys are stored and compared. */
  hash: string;
}

/** Prefix of a key when the operator names none (contract §5). */
export const DEFAULT_KEY_PREFIX = "sk";

/**
 * End of the prefix of a key of a seeded sandbox. It tells the functions to number a request before
 * they read it (ADR 0023). The database decides whether the sandbox has a seed.
 */
const SEEDED = "seeded";

/** A prefix that operators choose: short enough for SEEDED to follow. */
const LABEL = /^[a-z][a-z0-9]{0,9}(?<!seeded)$/;
export const LABEL_RULE =
  "must be a lower-case letter and up to 9 lower-case letters and digits, " +
  'and must not end with "seeded"';

/**
 * The test key that `supabase/seed.sql` publishes for local stacks. Everybody knows it, so the
 * service refuses it when it runs over https.
 */
export const PUBLISHED_TEST_KEY = "sk_test_PublishedKeyForLocalDevelopmentOnly000000003aKpBk";

/** Length of a key whose prefix has 16 characters. The parser refuses longer texts unread. */
const MAX_API_KEY_LENGTH = 71;

const BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const SECRET_BYTES = 32;
/** 43 characters hold 256 bits: 62^43 is the smallest power of 62 above 2^256. */
const SECRET_LENGTH = 43;
/** 6 characters hold 32 bits: 62^6 is the smallest power of 62 above 2^32. */
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
  const secret = Buffer.from(random(new Uint8Array(SECRET_BYTES))).toString("hex");
  const body = `${prefix}_${mode}_${base62(BigInt(`0x${secret}`), SECRET_LENGTH)}`;
  return body + checksum(body);
}

/** Reports whether an operator can choose this prefix for keys. */
export function isKeyLabel(text: string): boolean {
  return LABEL.test(text);
}

export function labelOf(key_text: string): string {
  const prefix = key_text.split("_", 1)[0]!;
  return prefix.endsWith(SEEDED) ? prefix.slice(0, -SEEDED.length) : prefix;
}

/** Returns the prefix for keys of a seeded sandbox that a key makes, as `skseeded`. */
export function seededPrefix(key_text: string): string {
  return labelOf(key_text) + SEEDED;
}

export function hasSeededPrefix(key_text: string): boolean {
  return key_text.split("_", 1)[0]!.endsWith(SEEDED);
}

/**
 * Parses the text of a key. Returns null if the form or the checksum is wrong.
 *
 * The database decides by the hash whether the key exists.
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
  return base62(BigInt(crc32(body) >>> 0), CHECKSUM_LENGTH);
}

function base62(value: bigint, length: number): string {
  let text = "";
  for (let rest = value; rest > 0n; rest /= 62n) text = BASE62[Number(rest % 62n)] + text;
  return text.padStart(length, "0");
}
