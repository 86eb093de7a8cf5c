/**
 * Bytes that follow from a seed, for seeded sandboxes: the same seed and label give the same bytes
 * on every machine (ADR 0023).
 */

import { createHmac } from "node:crypto";
import type { RandomSource } from "../core/ids.ts";

/** The random bytes of a change, and the order of its ids. */
export interface Source {
  random: RandomSource;
  /** Takes part in the ids (`idGenerator`). Absent: the sandbox has no settings. */
  order_ms?: number;
}

/**
 * Returns the source of a change in a sandbox that belongs to no request. Without a seed the bytes
 * are random, and the ids are in the order of the real time.
 * @param settings the settings of the sandbox; null: it has none
 * @param label what the bytes are for
 */
export function sourceIn(
  settings: { seed_root: string | null; requests: number } | null,
  label: () => string,
  { random, real_ms }: { random: RandomSource; real_ms: number },
): Source {
  if (settings === null) return { random };
  if (settings.seed_root === null) return { random, order_ms: real_ms };
  return { random: seededRandom(settings.seed_root, label()), order_ms: settings.requests };
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
