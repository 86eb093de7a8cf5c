/**
 * Decides a request with the present settings of its sandbox. The function uses the settings that
 * it knows. If they are outdated, the database refuses the request, and the function learns the
 * present ones and decides again (ADR 0023).
 */

import { sandboxOf } from "./sandbox.ts";
import type { Context } from "hono";
import { databaseUnavailable } from "../store/database.ts";
import type { Scope } from "../schema/api_key.ts";
import { type SandboxSettings, timeIn } from "./known_settings.ts";
import { OutdatedSettings } from "../store/outcome.ts";
import type { Access } from "../store/outcome.ts";
import type { Env } from "../http/request_state.ts";
import type { Route } from "../http/route.ts";

/** Most decisions of one request. More are needed only while somebody sets the clock again and again. */
const MAX_DECISIONS = 20;

/**
 * Runs `decide` with the access of the request until its settings are the present ones. Throws the
 * errors of `decide`, and `service_unavailable` after `MAX_DECISIONS`; then nothing has happened.
 */
export async function withPresentSettings<T>(
  c: Context<Env>,
  scope: Scope | null,
  decide: (access: Access, settings: SandboxSettings) => Promise<T>,
): Promise<T> {
  const { known_settings } = sandboxOf(c.get("deps"));
  const { hash } = c.get("state").key!;
  for (let i = 0; i < MAX_DECISIONS; i++) {
    try {
      const settings = known_settings.of(hash);
      return await decide(accessOf(c, scope, settings), settings);
    } catch (error) {
      if (!(error instanceof OutdatedSettings)) throw error;
      known_settings.learn(hash, error.detail);
    }
  }
  throw databaseUnavailable();
}

/** Makes the access of a request, by the settings that the function knows. */
export function accessOf(
  c: Context<Env>,
  scope: Scope | null,
  settings: SandboxSettings,
): Access {
  const state = c.get("state");
  const { rate_limits, storage_gb } = c.get("deps");
  return {
    key_hash: state.key!.hash,
    scope,
    version: settings.version,
    at_ms: timeIn(settings, state.at_ms),
    request_id: state.request_id,
    rate_limits: state.is_counted ? null : rate_limits,
    storage: storage_gb === null || state.key!.livemode
      ? null
      : { gb: storage_gb, adds: addsRows(state.route) },
    observe(api_key_id, remaining, environment_id) {
      state.key_id = api_key_id;
      state.environment_id = environment_id;
      if (remaining !== null) state.remaining = remaining;
    },
  };
}

/** Whether a request to a route adds something to its sandbox. */
function addsRows(route: Route | null | undefined): boolean {
  return (route?.method === "POST" || route?.method === "PUT") && !route.frees_storage;
}
