/** The clocks and the randomness of sandboxes, for the events of workers (contract §7). */

import type { Clock } from "../core/clock.ts";
import { idGenerator, type RandomSource } from "../core/ids.ts";
import { sourceIn } from "./seeded_random.ts";
import { readSettings, type SandboxSettings, timeIn } from "./known_settings.ts";
import type { Origins } from "../domain/changes/origin.ts";

/** Creates origins over the real clock and a source of random bytes. */
export function sandboxOrigins(
  { clock, random: real_random, docs_url }: {
    clock: Clock;
    random: RandomSource;
    docs_url: string | null;
  },
): Origins {
  return {
    at(settings, due) {
      const present = settingsOf(settings);
      // In an advance of the clock things happen at the times at which they are due.
      return due && present?.target_at
        ? Math.max(due.due_ms, Date.parse(due.not_before))
        : timeIn(present ?? readSettings(null), clock());
    },

    of({ settings, livemode, at_ms, label }) {
      const real = { random: real_random, real_ms: clock() };
      const { random, order_ms } = sourceIn(settingsOf(settings), label, real);
      return {
        request_id: null,
        idempotency_key: null,
        livemode,
        at_ms,
        newId: idGenerator(at_ms, random, order_ms),
        random,
        docs_url,
      };
    },
  };
}

function settingsOf(settings: unknown): SandboxSettings | null {
  return typeof settings === "string" ? readSettings(settings) : settings as SandboxSettings | null;
}
