/**
 * The settings of a sandbox that uses a special feature, such as a clock of its own: a row of
 * `pay.sandbox_settings` (supabase/schemas/sandbox_settings.sql, ADR 0023).
 */

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

/** Parses settings as the database returns them: JSON text; null: the sandbox has none. */
export function parseSettings(text: string | null): SandboxSettings | null {
  return text === null ? null : JSON.parse(text);
}
