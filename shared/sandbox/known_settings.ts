/**
 * The settings of sandboxes that a function knows. Requests carry the version that their function
 * knows. If the sandbox has another one, the database refuses them as outdated and returns the
 * settings, and the function decides again (supabase/schemas/sandbox_settings.sql, ADR 0023).
 */

import { RecentMap } from "../core/recent_map.ts";
import { CLOCK_CEILING_MS } from "../schema/clock.ts";
import type { SandboxSettings } from "../store/sandbox_settings.ts";

/** Most keys in the cache. */
const KEYS_MAX = 10_000;

/** The settings of every other sandbox: the real clock. */
const NO_SETTINGS: SandboxSettings = {
  version: 0,
  offset_ms: 0,
  frozen_at: null,
  target_at: null,
  fault_kinds: [],
  seed_root: null,
  requests: 0,
};

/** Returns the time of a sandbox at a real time, as `pay_internal.time_ahead` does. */
export function timeIn(settings: SandboxSettings, real_ms: number): number {
  const { version, frozen_at, offset_ms } = settings;
  if (version === 0) return real_ms;
  return frozen_at === null
    ? Math.min(real_ms + offset_ms, CLOCK_CEILING_MS)
    : Date.parse(frozen_at);
}

/** Settings by the hash of a key. Keys of sandboxes without settings have no entry. */
export class KnownSettings {
  readonly #settings = new RecentMap<string, SandboxSettings>(KEYS_MAX);

  /** Returns the settings that the key's sandbox had at the last response. */
  of(key_hash: string): SandboxSettings {
    return this.#settings.get(key_hash) ?? NO_SETTINGS;
  }

  /** Stores the settings of a response; null: the sandbox has none. */
  learn(key_hash: string, settings: SandboxSettings | null): void {
    if (settings === null) this.#settings.delete(key_hash);
    else this.#settings.set(key_hash, settings);
  }
}
