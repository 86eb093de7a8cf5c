/** The store of sandboxes' clocks. Each call runs one entry function in a round trip (ADR 0023). */

import { formatTime } from "../core/clock.ts";
import { type ApiError, invalidParameter, tryAgain } from "../core/errors.ts";
import type { SetClockBody } from "../schema/clock_body.ts";
import { CLOCK_CEILING_MS, MAX_ADVANCE_DAYS } from "../schema/limits.ts";
import type { StoredResponse } from "../store/commit_rows.ts";
import type { EntryCalls } from "../store/entry_calls.ts";
import type { KnownSettings } from "./known_settings.ts";
import {
  type Access,
  type Idempotency,
  requestParameter,
  type Responded,
  responseOf,
  type Row,
} from "../store/outcome.ts";
import { parseSettings } from "../store/sandbox_settings.ts";
import { sql } from "../store/statement.ts";

/** A clock that was set, with the response if the advance goes no further. */
interface SetClock extends Responded {
  environment_id: string;
  api_key_id: string;
  /** RFC 3339: the end of this advance; null: the clock does not move. */
  target: string | null;
}

/** The state of the advance of a request after a step. */
interface ClockStep {
  /** `waiting`: due work is not done yet. `moved`: call again. `done`: it is complete. */
  state: "waiting" | "moved" | "done";
  response: StoredResponse;
}

/** The outcomes of a target that a clock cannot have. */
type OutOfRange = "behind" | "beyond" | "too_far";

/** A row of `pay.set_clock`. */
type SetRow = Row<OutOfRange> & { environment_id: string };

/** The store of clocks. Each method throws `ApiError`. */
export class ClockStore {
  readonly #calls: EntryCalls;
  readonly #known: KnownSettings;

  /**
   * @param calls the single calls of the database
   * @param known learns the settings that a key has written
   */
  constructor(calls: EntryCalls, known: KnownSettings) {
    this.#calls = calls;
    this.#known = known;
  }

  /** Returns the clock as JSON text. */
  async read(access: Access): Promise<string> {
    const clock = sql`select * from pay.read_clock(p_request => ${requestParameter(access)})`;
    const row = await this.#calls.ask(access, ...clock);
    return row.body!;
  }

  /**
   * Returns what the clock brings next as JSON text.
   * @param until_ms a time of the sandbox; undefined: without an end
   * @param sends whether this service sends webhooks
   */
  async due(access: Access, until_ms: number | undefined, sends: boolean): Promise<string> {
    const until = until_ms === undefined ? null : formatTime(until_ms);
    const row = await this.#calls.ask(
      access,
      ...sql`select * from pay.read_due(p_request => ${requestParameter(access)},
        p_until => ${until}, p_sends => ${sends}::boolean)`,
    );
    return row.body!;
  }

  /** Sets the clock, or begins an advance. Throws `invalid_parameter` for a time out of range. */
  async set(
    access: Access,
    { to, advance, mode }: SetClockBody,
    idempotency: Idempotency | null,
  ): Promise<SetClock> {
    const command = { to: to && formatTime(to), advance_s: advance, mode };
    const row = await this.#calls.ask<SetRow>(
      access,
      ...sql`select * from pay.set_clock(p_request => ${requestParameter(access, idempotency)},
        p_command => ${command})`,
    );
    const { outcome } = row;
    if (outcome === "behind" || outcome === "beyond" || outcome === "too_far") {
      throw outOfRange(outcome, row.detail!, advance === undefined ? "to" : "advance");
    }
    const replayed = row.outcome === "replay";
    const settings = replayed ? null : parseSettings(row.detail!);
    if (settings !== null) this.#known.learn(access.key_hash, settings);
    const { environment_id, api_key_id } = row;
    return {
      environment_id,
      api_key_id: api_key_id!,
      target: settings?.target_at ?? null,
      response: responseOf(row),
      replayed,
    };
  }

  /**
   * Makes one step of an advance, and stores its response under the idempotency key of the request.
   * Throws `service_unavailable` if the sandbox was reset.
   * @param sends whether this service sends webhooks; if not, the advance does not wait for them
   */
  async step(
    access: Access,
    { environment_id, api_key_id, target }: SetClock,
    sends: boolean,
    idempotency: Idempotency | null,
  ): Promise<ClockStep> {
    type StepRow = { state: ClockStep["state"]; body: string; detail: string };
    const { request_id } = access;
    const response = { api_key_id, request_id, idempotency_key: idempotency?.key, target };
    const [row] = await this.#calls.run<StepRow>(
      access,
      ...sql`select * from pay.step_clock(p_environment_id => ${environment_id},
        p_response => ${response}, p_sends => ${sends}::boolean)`,
    );
    if (!row) {
      throw tryAgain(
        "service_unavailable",
        "The sandbox was reset during the advance, and its clock is the real one again",
      );
    }
    this.#known.learn(access.key_hash, parseSettings(row.detail));
    return { state: row.state, response: { status: 200, body: row.body } };
  }
}

function outOfRange(
  outcome: OutOfRange,
  now: string,
  param: "to" | "advance",
): ApiError {
  const clock = `the clock of the sandbox, which shows ${now}`;
  if (outcome === "behind") {
    return invalidParameter(
      param,
      `"${param}" is before ${clock}: a clock never goes back. Send a later time, or reset the ` +
        "sandbox",
    );
  }
  if (outcome === "beyond") {
    const fault = param === "to" ? '"to" is' : '"advance" ends';
    return invalidParameter(
      param,
      `${fault} after ${formatTime(CLOCK_CEILING_MS)}, the latest time of ${clock}: send an ` +
        "earlier time, or reset the sandbox to begin with the real time again",
    );
  }
  return invalidParameter(
    param,
    param === "to"
      ? `"to" is more than ${MAX_ADVANCE_DAYS} days after ${clock}: send an earlier time, and ` +
        "then the next one"
      : `"advance" ends more than ${MAX_ADVANCE_DAYS} days after ${clock}: it adds to the ` +
        "advances that are not complete. Send it when the clock has reached their end",
  );
}
