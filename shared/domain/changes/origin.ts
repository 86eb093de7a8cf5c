/**
 * The origins of events that belong to no request: the clock and the randomness of an environment.
 * Live environments have the real ones; a sandbox can have its own.
 */

import type { EventContext } from "./event.ts";

/** When work of an environment is due by the clock of that environment. */
interface Due {
  due_ms: number;
  /** RFC 3339: the last change of its resource. */
  not_before: string;
}

/** Makes origins. `settings` are those of the sandbox, as the database returns them; null: none. */
export interface Origins {
  /** Returns the present time of an environment, or the time of work that is due there. */
  at(settings: unknown, due?: Due): number;
  /**
   * Makes the origin of events.
   * @param label what the random bytes are for, in a seeded sandbox
   */
  of(
    origin: { settings: unknown; livemode: boolean; at_ms: number; label: () => string },
  ): EventContext;
}
