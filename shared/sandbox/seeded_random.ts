/**
 * Bytes that follow from a seed, for seeded sandboxes: the same seed and label give the same bytes
 * on every machine (ADR 0023).
 */

import { createHmac } from "node:crypto";
import type { RandomSource } from "../core/ids.ts";

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
