/**
 * What a function knows of the settings of sandboxes: those that use a special feature, such as a
 * clock of their own. Requests carry the version that their function knows. If the sandbox has
 * another one, the database refuses them as outdated and returns the settings, and the function
 * decides again (supabase/schemas/sandbox_settings.sql, ADR 0023).
 */

import { RecentMap } from "../core/recent_map.ts";
import { CLOCK_CEILING_MS } from "../schema/clock.ts";

/** Most keys in the cache. */
const KEYS_MAX = 10_000;

/** The settings of a sandbox: the row of `pay.sandbox_settings`. */
export interface SandboxSettings {
  version: number;
  /** How far a clock that runs is ahead of the real time, in milliseconds. */
  offset_ms: number;
  /** RFC 3339: the time at which the clock stands; null: it runs. */
  frozen_at: string | null;
  /** RFC 3339: the end of an advance under way; null: there is none. */
  target_at: string | null;
  /** The kinds of declared faults that can still happen, without those of deliveries. */
  fault_kinds: readonly string[];
  /** Hex text from which ids and secrets are derived; null: the sandbox has no seed. */
  seed_root: string | null;
  /** Number of requests of a seeded sandbox. */
  requests: number;
}

/** The settings of every other environment: the real clock. */
const NO_SETTINGS: SandboxSettings = {
  version: 0,
  offset_ms: 0,
  frozen_at: null,
  target_at: null,
  fault_kinds: [],
  seed_root: null,
  requests: 0,
};

/** Returns the time of a sandbox with these settings at a real time, as `pay_internal.time_ahead` does. */
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

  /** Stores the settings of a response, JSON text or null. */
  learn(key_hash: string, detail: string | null): void {
    if (detail === null) return void this.#settings.delete(key_hash);
    this.#settings.set(key_hash, readSettings(detail));
  }
}

/** Reads settings as the database returns them: JSON text, or null if there are none. */
export function readSettings(detail: string | null): SandboxSettings {
  return detail === null ? NO_SETTINGS : JSON.parse(detail);
}
