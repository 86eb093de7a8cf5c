/**
 * The origins of events that belong to no request: the clock and the randomness of an environment.
 * Live environments have the real ones; a sandbox can have its own.
 */

import type { Clock } from "../../core/clock.ts";
import { idGenerator, type RandomSource } from "../../core/ids.ts";
import type { SandboxSettings } from "../../store/sandbox_settings.ts";
import type { EventContext } from "./event.ts";

/** When work of an environment is due by the clock of that environment. */
interface Due {
  due_ms: number;
  /** RFC 3339: the last change of its resource. */
  not_before: string;
}

/** The clocks and the randomness of sandboxes with settings. */
export interface SandboxOrigins {
  /** Returns the present time of a sandbox, or the time of work that is due there. */
  at(settings: SandboxSettings, due?: Due): number;
  /** @param label what the random bytes are for, in a seeded sandbox */
  sourceOf(settings: SandboxSettings, label: () => string): Source;
}

/** The random bytes of events, and the time that takes part in their ids (`idGenerator`). */
interface Source {
  random: RandomSource;
  order_ms?: number;
}

/** Makes origins. `settings` are those of the sandbox; null: it has none, or is no sandbox. */
export class Origins {
  readonly #real: { clock: Clock; random: RandomSource; docs_url: string | null };
  readonly #sandboxes: SandboxOrigins;

  constructor(
    real: { clock: Clock; random: RandomSource; docs_url: string | null },
    sandboxes: SandboxOrigins,
  ) {
    this.#real = real;
    this.#sandboxes = sandboxes;
  }

  /** Returns the present time of an environment, or the time of work that is due there. */
  at(settings: SandboxSettings | null, due?: Due): number {
    return settings === null ? this.#real.clock() : this.#sandboxes.at(settings, due);
  }

  /** Makes the origin of events. `label` is that of `SandboxOrigins`. */
  of(
    origin: {
      settings: SandboxSettings | null;
      livemode: boolean;
      at_ms: number;
      label: () => string;
    },
  ): EventContext {
    const { settings, livemode, at_ms, label } = origin;
    const { docs_url, random: real } = this.#real;
    const { random, order_ms }: Source = settings === null
      ? { random: real }
      : this.#sandboxes.sourceOf(settings, label);
    const newId = idGenerator(at_ms, random, order_ms);
    return { request_id: null, idempotency_key: null, livemode, at_ms, newId, random, docs_url };
  }
}
