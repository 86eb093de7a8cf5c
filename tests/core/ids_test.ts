/**
 * Ids: form, order by time and within a change, randomness, and lower bounds for time filters. And
 * the randomness of a seeded sandbox.
 */

import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { idFloor, idGenerator, isId, type RandomSource } from "../../shared/core/ids.ts";
import { seededRandom } from "../../shared/sandbox/seeded_random.ts";

const NOW = Date.UTC(2026, 0, 2, 3, 4, 5, 678);
const fill = (byte: number): RandomSource => (bytes) => bytes.fill(byte);

Deno.test("idGenerator() makes ids of 26 lower-case characters", () => {
  const id = idGenerator(NOW)("pay_");
  assert.match(id, /^pay_[0-9a-z]{26}$/);
  assert.ok(isId("pay_", id));
});

Deno.test("idGenerator() makes ids that sort by time for any random part", () => {
  const times = [0, 1, 31, 32, 1023, 1024, NOW - 1, NOW, NOW + 1, Date.UTC(3000, 0)];
  for (const [at, time] of times.entries()) {
    if (at === 0) continue;
    const earlier = idGenerator(times[at - 1]!, fill(255));
    for (let i = 0; i < 31; i++) earlier("evt_");
    assert.ok(earlier("evt_") < idGenerator(time, fill(0))("evt_"), `at ${time}`);
  }
});

Deno.test("idGenerator() makes 32 ids of one change in ascending order, of all kinds together", () => {
  const newId = idGenerator(NOW);
  const kinds = ["pay_", "evt_", "le_"] as const;
  const suffixes = Array.from({ length: 32 }, (_, i) => newId(kinds[i % 3]!).slice(-26));
  assert.deepEqual(suffixes, suffixes.toSorted());
  assert.equal(new Set(suffixes).size, 32);
});

Deno.test("idGenerator() makes distinct ids beyond 32 in one change", () => {
  const newId = idGenerator(NOW);
  assert.equal(new Set(Array.from({ length: 1000 }, () => newId("le_"))).size, 1000);
});

Deno.test("idGenerator() lets each of 80 random bits change the id", () => {
  const ids = new Set([idGenerator(NOW, fill(0))("pay_")]);
  for (let byte = 0; byte < 16; byte++) {
    for (let bit = 0; bit < 5; bit++) {
      ids.add(
        idGenerator(NOW, (bytes) => {
          bytes[byte] = 1 << bit;
          return bytes;
        })("pay_"),
      );
    }
  }
  assert.equal(ids.size, 81);
});

Deno.test("idGenerator() makes distinct ids at one moment with the system's randomness", () => {
  const ids = Array.from({ length: 10_000 }, () => idGenerator(NOW)("pay_"));
  assert.equal(new Set(ids).size, ids.length);
  for (let at = 13; at < 29; at++) {
    assert.equal(new Set(ids.map((id) => id[at])).size, 32, `character ${at}`);
  }
});

Deno.test("idGenerator() leaves reserved ordinals unused, with the same randomness", () => {
  const [first, ...others] = "0123456789abcdefghjkmnpqrstvwxyz";
  for (let before = 0; before <= others.length; before++) {
    const newId = idGenerator(NOW);
    for (let i = 0; i < before; i++) newId("evt_");
    const id = newId("txn_", 2);
    const next = newId("evt_");
    // Two ordinals must follow. After 30 ids the transaction starts with new randomness.
    assert.equal(id.at(-1), before < 30 ? [first, ...others][before] : first, id);
    const is_full = before === 29;
    assert.equal(
      next.at(-1),
      is_full ? first : [first, ...others][(before < 30 ? before : 0) + 3],
      next,
    );
    if (!is_full && before < 30) assert.equal(next.slice(4, -1), id.slice(4, -1));
  }
});

Deno.test("idFloor() is the lowest id of its moment, above every id of the millisecond before", () => {
  const floor = idFloor("pay_", NOW);
  assert.equal(idGenerator(NOW, fill(0))("pay_"), floor);
  assert.ok(isId("pay_", floor));
  const earlier = idGenerator(NOW - 1, fill(255));
  for (let i = 0; i < 32; i++) assert.ok(earlier("pay_") < floor);
  // A time before 1970 is below every id.
  assert.ok(idFloor("pay_", -1) <= idGenerator(0, fill(0))("pay_"));
});

const SUFFIX = "0123456789abcdefghjkmnpqrs";
const NO_IDS = [
  ...[`re_${SUFFIX}`, `pay_${SUFFIX}0`, `pay_${SUFFIX.slice(1)}`, `pay_${SUFFIX.toUpperCase()}`],
  ...["i", "l", "o", "u"].map((letter) => `pay_${SUFFIX.slice(1)}${letter}`),
  ...[`pay_${SUFFIX}\n`, ` pay_${SUFFIX}`, SUFFIX, "pay_", ""],
];
Deno.test("isId() takes only the prefix and 26 characters of the alphabet", () => {
  assert.ok(isId("pay_", `pay_${SUFFIX}`));
  assert.deepEqual(NO_IDS.filter((text) => isId("pay_", text)), []);
});

const ROOT = "5f".repeat(32);

/** Reads the bytes of a source in parts of these lengths, as hex. */
function read(label: string, lengths: number[], root = ROOT): string {
  const random = seededRandom(root, label);
  return lengths.map((length) => Buffer.from(random(new Uint8Array(length))).toString("hex")).join(
    "",
  );
}

Deno.test("seededRandom() gives the same bytes in every division", () => {
  assert.equal(read("a", [100]), read("a", [1, 31, 33, 35]));
});

Deno.test("seededRandom() gives other bytes for another label and another root", () => {
  const all = [read("a", [32]), read("b", [32]), read("a", [32], "00".repeat(32))];
  assert.equal(new Set(all).size, 3);
});

Deno.test("seededRandom() gives the bytes of HMAC-SHA256 of the label and the block", () => {
  assert.equal(
    idGenerator(Date.UTC(2030, 0, 1), seededRandom(ROOT, "request 1"))("pay_"),
    "pay_1q3dcbd00hxjc3mfbxmnvb14h0",
  );
});
