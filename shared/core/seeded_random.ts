/**
 * Bytes that follow from a seed, for seeded sandboxes: the same seed and label give the same bytes
 * on every machine (ADR 0052).
 */

import { createHmac } from "node:crypto";
import { type RandomSource, systemRandom } from "./ids.ts";

/**
 * Returns the random source of a change in a sandbox: one that follows from its seed, or else
 * `random`.
 * @param settings the settings of the sandbox
 * @param label what the bytes are for
 */
export function randomIn(
  settings: { seed_root: string | null } | undefined,
  label: () => string,
  random: RandomSource,
): RandomSource {
  return settings?.seed_root ? seededRandom(settings.seed_root, label()) : random;
}

/**
 * Returns a source of the bytes HMAC-SHA256(root, label and the number of the block), one block of
 * 32 bytes after another.
 * @param root hex text that is derived from the seed
 * @param label what the bytes are for; each label has bytes of its own
 */
export function seededRandom(root: string, label: string): RandomSource {
  let block = new Uint8Array();
  let blocks = 0;
  return (bytes) => {
    for (let filled = 0; filled < bytes.length;) {
      if (block.length === 0) {
        block = new Uint8Array(createHmac("sha256", root).update(`${label}\n${blocks++}`).digest());
      }
      const part = block.subarray(0, bytes.length - filled);
      bytes.set(part, filled);
      filled += part.length;
      block = block.subarray(part.length);
    }
    return bytes;
  };
}

/** Returns a source of random bytes that begin with the four bytes of a number. */
export function orderedRandom(n: number): RandomSource {
  return (bytes) => {
    systemRandom(bytes);
    new DataView(bytes.buffer, bytes.byteOffset).setUint32(0, n);
    return bytes;
  };
}
