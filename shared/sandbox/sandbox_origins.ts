/** The clocks and the randomness of sandboxes, for the events of workers (contract §7). */

import type { Clock } from "../core/clock.ts";
import type { RandomSource } from "../core/ids.ts";
import type { SandboxOrigins } from "../domain/changes/origin.ts";
import { timeIn } from "./known_settings.ts";
import { seededRandom } from "./seeded_random.ts";

/** Creates origins over the real clock and a source of random bytes. */
export function sandboxOrigins(clock: Clock, random: RandomSource): SandboxOrigins {
  return {
    at: (settings, due) =>
      // In an advance of the clock things happen at the times at which they are due.
      due && settings.target_at
        ? Math.max(due.due_ms, Date.parse(due.not_before))
        : timeIn(settings, clock()),

    // Without a seed the bytes are random, and the ids are in the order of the real time.
    sourceOf: ({ seed_root, requests }, label) =>
      seed_root === null
        ? { random, order_ms: clock() }
        : { random: seededRandom(seed_root, label()), order_ms: requests },
  };
}
