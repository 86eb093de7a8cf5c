/**
 * Decides a request with the present settings of its sandbox. The function uses the settings that
 * it knows. If they are outdated, the database refuses the request, and the function learns the
 * present ones and decides again (ADR 0023).
 */

import type { Context } from "hono";
import type { Scope } from "../schema/api_key.ts";
import { type KnownSettings, timeIn } from "./known_settings.ts";
import { OutdatedSettings } from "../store/outcome.ts";
import type { Access } from "../store/outcome.ts";
import type { SandboxSettings } from "../store/sandbox_settings.ts";
import { accessOf } from "../http/request_environment.ts";
import type { Env } from "../http/request_state.ts";
import type { Route } from "../http/route.ts";

/**
 * Runs `decide` with the access of the request until its settings are the present ones. Throws the
 * errors of `decide`, and `service_unavailable` when the retries are used up, because somebody sets
 * the clock again and again; then nothing has happened.
 */
export async function withPresentSettings<T>(
  c: Context<Env>,
  known: KnownSettings,
  scope: Scope | null,
  decide: (access: Access, settings: SandboxSettings) => Promise<T>,
): Promise<T> {
  const { key, retries } = c.get("state");
  const { hash } = key!;
  for (;;) {
    try {
      const settings = known.of(hash);
      return await decide(sandboxAccess(c, scope, settings), settings);
    } catch (error) {
      if (!(error instanceof OutdatedSettings)) throw error;
      known.learn(hash, error.settings);
      await retries.again();
    }
  }
}

/** Makes the access of a request, by the settings that the function knows. */
export function sandboxAccess(
  c: Context<Env>,
  scope: Scope | null,
  settings: SandboxSettings,
): Access {
  const { at_ms, route } = c.get("state");
  const { storage_gb: gb } = c.get("deps");
  return accessOf(c, scope, {
    version: settings.version,
    at_ms: timeIn(settings, at_ms),
    storage: gb === null ? null : { gb, adds: addsRows(route) },
  });
}

/** Whether a request to a route adds something to its sandbox. */
function addsRows(route: Route | null): boolean {
  return (route?.method === "POST" || route?.method === "PUT") && !route.frees_storage;
}
