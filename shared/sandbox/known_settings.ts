/**
 * The settings of sandboxes that a function knows. Requests carry the version that their function
 * knows. If the sandbox has another one, the database refuses them as outdated and returns the
 * settings, and the function decides again (supabase/schemas/sandbox_settings.sql, ADR 0023).
 */

import type { Context } from "hono";
import { RecentMap } from "../core/recent_map.ts";
import { accessOf } from "../http/request_environment.ts";
import type { Env } from "../http/request_state.ts";
import type { Scope } from "../schema/api_key.ts";
import { CLOCK_CEILING_MS } from "../schema/limits.ts";
import { type Access, OutdatedSettings } from "../store/outcome.ts";
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

  /** Stores the settings of a response; null: the sandbox has none. */
  learn(key_hash: string, settings: SandboxSettings | null): void {
    if (settings === null) this.#settings.delete(key_hash);
    else this.#settings.set(key_hash, settings);
  }

  /** Makes the access of a request, by the settings that its sandbox had at the last response. */
  accessOf(c: Context<Env>, scope: Scope | null): Access {
    return this.#known(c, scope)[0];
  }

  /**
   * Runs `decide` with the access of the request until its settings are the present ones. Throws
   * the errors of `decide`, and `service_unavailable` when the retries are used up, because
   * somebody sets the clock again and again; then nothing has happened.
   */
  async decide<T>(
    c: Context<Env>,
    scope: Scope | null,
    decide: (access: Access, settings: SandboxSettings) => Promise<T>,
  ): Promise<T> {
    const { key, retries } = c.get("state");
    for (;;) {
      try {
        return await decide(...this.#known(c, scope));
      } catch (error) {
        if (!(error instanceof OutdatedSettings)) throw error;
        this.learn(key!.hash, error.settings);
        await retries.again();
      }
    }
  }

  #known(c: Context<Env>, scope: Scope | null): [access: Access, settings: SandboxSettings] {
    const { key, at_ms, route } = c.get("state");
    const { storage_gb: gb } = c.get("deps");
    const settings = this.#settings.get(key!.hash) ?? NO_SETTINGS;
    const adds = (route?.method === "POST" || route?.method === "PUT") && !route.frees_storage;
    const access = accessOf(c, scope, {
      version: settings.version,
      at_ms: timeIn(settings, at_ms),
      storage: gb === null ? null : { gb, adds },
    });
    return [access, settings];
  }
}
