import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { idGenerator } from "../../shared/core/ids.ts";
import { seededRandom } from "../../shared/sandbox/seeded_random.ts";

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
