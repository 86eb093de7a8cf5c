/** API keys: form, randomness, checksum, and refused texts. */

import assert from "node:assert/strict";
import { generateApiKey, parseApiKey } from "../../shared/core/api_key.ts";
import type { RandomSource } from "../../shared/core/ids.ts";

const fill = (byte: number): RandomSource => (bytes) => bytes.fill(byte);

/** All random bits are zero. zlib in Python computed the checksum, independently of this code. */
const ZERO_KEY = "sk_test_" + "0".repeat(43) + "1NyHUD";
/**
 * All random bits are one. The highest bit of the CRC-32 is set, which some runtimes return as a
 * negative number.
 */
const ONES_KEY = "live3_live_yhjskwdA6OZ1AL1YmHWZWm8LLG7HjnuCA2j5rOw8Xp14J9WZG";

Deno.test("generateApiKey() makes the known keys from known bits", () => {
  assert.equal(generateApiKey("test", "sk", fill(0)), ZERO_KEY);
  assert.equal(generateApiKey("live", "live3", fill(255)), ONES_KEY);
});

Deno.test("generateApiKey() uses each of 256 random bits", () => {
  const keys = new Set([ZERO_KEY]);
  for (let bit = 0; bit < 256; bit++) {
    keys.add(generateApiKey("test", "sk", (bytes) => {
      assert.equal(bytes.length, 32);
      bytes[bit >> 3] = 1 << (bit & 7);
      return bytes;
    }));
  }
  assert.equal(keys.size, 257);
});

Deno.test("generateApiKey() makes a different key each time, and all can be parsed", () => {
  const keys = new Set<string>();
  for (let i = 0; i < 1000; i++) {
    const key = generateApiKey(i % 2 === 0 ? "test" : "live");
    assert.match(key, /^sk_(test|live)_[0-9A-Za-z]{49}$/);
    assert.equal(parseApiKey(key)?.mode, i % 2 === 0 ? "test" : "live");
    keys.add(key);
  }
  assert.equal(keys.size, 1000);
});

Deno.test("generateApiKey() takes a prefix of 16 lower-case letters and digits, a letter first", () => {
  for (const prefix of ["", "Sk", "1sk", "s_k", "s-k", "sk ", "ſk", "a".repeat(17)]) {
    assert.throws(() => generateApiKey("test", prefix), RangeError, prefix);
  }
  for (const prefix of ["a", "sk", "z9", "a".repeat(16), "test", "live"]) {
    assert.equal(parseApiKey(generateApiKey("live", prefix))?.prefix, `${prefix}_live_`);
  }
});

Deno.test("parseApiKey() returns mode, prefix, last four and hash", () => {
  assert.deepEqual(parseApiKey(ZERO_KEY), {
    mode: "test",
    prefix: "sk_test_",
    last_four: ZERO_KEY.slice(-4),
    hash: "9e80f0bc5a9a57efae5e22ba2bab3cc43e3c983632404dfbf21639651f998d3f",
  });
  assert.equal(parseApiKey(ONES_KEY)?.mode, "live");
});

Deno.test("parseApiKey() refuses every changed character and swap of neighbours", () => {
  const key = generateApiKey("test");
  for (let at = 0; at < key.length; at++) {
    for (const other of "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_") {
      const changed = key.slice(0, at) + other + key.slice(at + 1);
      assert.equal(parseApiKey(changed) === null, changed !== key, changed);
    }
    const swapped = key.slice(0, at) + key.charAt(at + 1) + key.charAt(at) + key.slice(at + 2);
    assert.equal(parseApiKey(swapped) === null, swapped !== key, swapped);
  }
});

const REFUSED: [reason: string, text: string][] = [
  ["an empty text", ""],
  ["a prefix alone", "sk_test_"],
  ["a key without its last character", ZERO_KEY.slice(0, -1)],
  ["a key with one more character", ZERO_KEY + "0"],
  ["a space before", " " + ZERO_KEY],
  ["a space after", ZERO_KEY + " "],
  ["a line feed after", ZERO_KEY + "\n"],
  ["another mode", ZERO_KEY.replace("test", "demo")],
  ["the mode in upper case", ZERO_KEY.replace("test", "TEST")],
  ["the other mode under the same checksum", ZERO_KEY.replace("test", "live")],
  ["another prefix under the same checksum", ZERO_KEY.replace("sk", "pk")],
  ["no prefix", ZERO_KEY.slice(2)],
  ["a long prefix", "a".repeat(17) + ZERO_KEY.slice(2)],
  ["no checksum", ZERO_KEY.slice(0, -6)],
  ["a character outside base62", ZERO_KEY.slice(0, 20) + "-" + ZERO_KEY.slice(21)],
  ["a full-width character", ZERO_KEY.slice(0, 20) + "０" + ZERO_KEY.slice(21)],
  ["the scheme", `Bearer ${ZERO_KEY}`],
  ["a very long text", "a".repeat(10_000_000)],
];

for (const [reason, text] of REFUSED) {
  Deno.test(`parseApiKey() refuses ${reason}`, () => assert.equal(parseApiKey(text), null));
}
