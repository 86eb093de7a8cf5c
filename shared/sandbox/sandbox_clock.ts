/**
 * The clock of a sandbox: it is read, frozen, and advanced (contract §7). An advance moves the
 * clock from one time at which something is due to the next. The dispatcher and the provider worker
 * do what is due at each of them before the clock moves on, so everything happens at its own time
 * and in order. A request takes a bounded time; the response tells how to go on (ADR 0023).
 */

import { invalidParameter } from "../core/errors.ts";
import type { SetClockBody } from "../schema/clock_body.ts";
import type { ClockStore } from "./clock_store.ts";
import type { Reply, ServiceRequest } from "../domain/changes/service_request.ts";

/** Longest time of one request. Clients and gateways wait longer. */
const ADVANCE_MS = 2_000;
/**
 * The same in a seeded sandbox, whose responses must not depend on the speed of the machine: as
 * long as the longest read of an inbox (contract §4), which clients and gateways wait for too.
 */
const SEEDED_ADVANCE_MS = 20_000;
/** Longest wait before a further look at work under way, which another isolate can have done. */
const LOOK_AGAIN_MS = 50;

export type SandboxClock = ReturnType<typeof createSandboxClock>;

/**
 * Creates the operations on a sandbox's clock. Each throws `ApiError`.
 * @param sends whether this service sends webhooks
 * @param work does what is due; resolves when nothing is, or after some milliseconds
 */
export function createSandboxClock(
  { store, sends, work, advance_ms = ADVANCE_MS }: {
    store: ClockStore;
    sends: boolean;
    work: (longest_ms: number) => Promise<unknown>;
    advance_ms?: number;
  },
) {
  return {
    read: ({ access }: ServiceRequest) => store.read(access),

    /** Returns what the clock brings until a time of the sandbox as JSON text. */
    due: ({ access }: ServiceRequest, until_ms: number | undefined) =>
      store.due(access, until_ms, sends),

    async set(
      { access, context, idempotency }: ServiceRequest,
      command: SetClockBody,
    ): Promise<Reply> {
      requireOne(command);
      const begun = await store.set(access, command, idempotency);
      let { response } = begun;
      if (begun.replayed) return { response, replayed: true };
      const is_seeded = context.run_number !== null;
      const until = performance.now() + (is_seeded ? SEEDED_ADVANCE_MS : advance_ms);
      for (let state = ""; state !== "done" && performance.now() < until;) {
        ({ state, response } = await store.step(access, begun, sends, idempotency));
        if (state === "waiting") await work(LOOK_AGAIN_MS);
      }
      return { response, replayed: false };
    },
  };
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
