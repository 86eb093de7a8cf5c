/**
 * The clock of a sandbox: it is read, frozen, and advanced (contract §7). An advance moves the
 * clock from one time at which something is due to the next. The dispatcher and the provider worker
 * do what is due at each of them before the clock moves on, so everything happens at its own time
 * and in order. A request takes a bounded time; the response tells how to go on. Each call of the
 * database runs one entry function in a round trip (ADR 0023).
 */

import { formatTime } from "../core/clock.ts";
import { type ApiError, invalidParameter, tryAgain } from "../core/errors.ts";
import type { Reply, ServiceRequest } from "../domain/changes/service_request.ts";
import type { SetClockBody } from "../schema/clock_body.ts";
import { CLOCK_CEILING_MS, MAX_ADVANCE_DAYS } from "../schema/limits.ts";
import type { StoredResponse } from "../store/commit_rows.ts";
import type { EntryCalls } from "../store/entry_calls.ts";
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
import type { KnownSettings } from "./known_settings.ts";

/** Longest time of one request. Clients and gateways wait longer. */
const ADVANCE_MS = 2_000;
/**
 * The same in a seeded sandbox, whose responses must not depend on the speed of the machine: as
 * long as the longest read of an inbox (contract §4), which clients and gateways wait for too.
 */
const SEEDED_ADVANCE_MS = 20_000;
/** Longest wait before a further look at work under way, which another isolate can have done. */
const LOOK_AGAIN_MS = 50;

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

interface SandboxClockOptions {
  /** The single calls of the database. */
  calls: EntryCalls;
  /** Learns the settings that a key has written. */
  known_settings: KnownSettings;
  /** Whether this service sends webhooks; if not, an advance does not wait for them. */
  sends: boolean;
  /** Does what is due; resolves when nothing is, or after some milliseconds. */
  work: (longest_ms: number) => Promise<unknown>;
  advance_ms?: number;
}

/** The operations on a sandbox's clock. Each throws `ApiError`. */
export class SandboxClock {
  readonly #options: SandboxClockOptions;

  constructor(options: SandboxClockOptions) {
    this.#options = options;
  }

  /** Returns the clock as JSON text. */
  async read({ access }: ServiceRequest): Promise<string> {
    const clock = sql`select * from pay.read_clock(p_request => ${requestParameter(access)})`;
    const row = await this.#options.calls.ask(access, ...clock);
    return row.body!;
  }

  /**
   * Returns what the clock brings next as JSON text.
   * @param until_ms a time of the sandbox; undefined: without an end
   */
  async due({ access }: ServiceRequest, until_ms: number | undefined): Promise<string> {
    const { calls, sends } = this.#options;
    const until = until_ms === undefined ? null : formatTime(until_ms);
    const row = await calls.ask(
      access,
      ...sql`select * from pay.read_due(p_request => ${requestParameter(access)},
        p_until => ${until}, p_sends => ${sends}::boolean)`,
    );
    return row.body!;
  }

  async set(
    { access, context, idempotency }: ServiceRequest,
    command: SetClockBody,
  ): Promise<Reply> {
    requireOne(command);
    const { work, advance_ms = ADVANCE_MS } = this.#options;
    const begun = await this.#begin(access, command, idempotency);
    let { response } = begun;
    if (begun.replayed) return { response, replayed: true };
    const is_seeded = context.run_number !== null;
    const until = performance.now() + (is_seeded ? SEEDED_ADVANCE_MS : advance_ms);
    for (let state = ""; state !== "done" && performance.now() < until;) {
      ({ state, response } = await this.#step(access, begun, idempotency));
      if (state === "waiting") await work(LOOK_AGAIN_MS);
    }
    return { response, replayed: false };
  }

  /** Sets the clock, or begins an advance. Throws `invalid_parameter` for a time out of range. */
  async #begin(
    access: Access,
    { to, advance, mode }: SetClockBody,
    idempotency: Idempotency | null,
  ): Promise<SetClock> {
    const { calls, known_settings } = this.#options;
    const command = { to: to && formatTime(to), advance_s: advance, mode };
    const row = await calls.ask<SetRow>(
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
    if (settings !== null) known_settings.learn(access.key_hash, settings);
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
   */
  async #step(
    access: Access,
    { environment_id, api_key_id, target }: SetClock,
    idempotency: Idempotency | null,
  ): Promise<ClockStep> {
    const { calls, known_settings, sends } = this.#options;
    type StepRow = { state: ClockStep["state"]; body: string; detail: string };
    const { request_id } = access;
    const response = { api_key_id, request_id, idempotency_key: idempotency?.key, target };
    const [row] = await calls.run<StepRow>(
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
    known_settings.learn(access.key_hash, parseSettings(row.detail));
    return { state: row.state, response: { status: 200, body: row.body } };
  }
}

/** Throws `invalid_parameter` unless the body moves the clock once, or sets its mode. */
function requireOne({ to, advance, mode }: SetClockBody): void {
  if (to !== undefined && advance !== undefined) {
    throw invalidParameter("to", 'Send either "to" or "advance", and not both');
  }
  if (to === undefined && advance === undefined && mode === undefined) {
    throw invalidParameter("to", 'Send "to", "advance" or "mode"');
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
