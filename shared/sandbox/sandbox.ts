/** What the routes and the environment of sandboxes share. */

import type { Dependencies } from "../http/dependencies.ts";
import { type Route, route, type RouteDefinition } from "../http/route.ts";
import type { Challenges } from "./challenges.ts";
import type { Sandboxes } from "./disposable_sandboxes.ts";
import type { FaultStore } from "./fault_store.ts";
import type { KnownSettings } from "./known_settings.ts";
import type { SandboxChanges } from "./sandbox_changes.ts";
import type { SandboxClock } from "./sandbox_clock.ts";
import type { SandboxMoves } from "./sandbox_moves.ts";
import type { SeededStore } from "./seeded_store.ts";

export interface Sandbox {
  moves: SandboxMoves;
  /** For the page where payers complete 3-D Secure. */
  challenges: Challenges;
  disposable: Sandboxes;
  clock: SandboxClock;
  changes: SandboxChanges;
  faults: FaultStore;
  known_settings: KnownSettings;
  seeded_store: SeededStore;
  /** Whether the requests are logged for their merchants. */
  logs_requests: boolean;
}

export type SandboxDependencies = Dependencies & { sandbox: Sandbox };

export function sandboxRoute<Body, Query>(
  definition: RouteDefinition<Body, Query, SandboxDependencies>,
): Route {
  return route(definition);
}
