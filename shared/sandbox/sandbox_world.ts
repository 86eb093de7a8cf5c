/**
 * The worlds of all requests, with what a sandbox has and a live environment has not: a clock of its own, a
 * seed with a transcript, declared faults, and a log of its requests.
 */

import { ApiError } from "../core/errors.ts";
import type { Dependencies } from "../http/dependencies.ts";
import { LoggedBodies } from "./logged_bodies.ts";
import { requestLogEntry } from "./request_log_entry.ts";
import { withPresentSettings } from "./present_settings.ts";
import {
  breakOff,
  ConnectionLost,
  FAULT_HEADER,
  FaultOfRequest,
  faultThing,
  readFaultHeader,
} from "./request_faults.ts";
import { numberRequests, runOf, sourceOf, storeTranscript } from "./seeded_run.ts";
import { sandboxOf } from "./sandbox.ts";
import type { World } from "../http/world.ts";

/** The path of a transcript, which does not change with each look at it. */
const TRANSCRIPT = /\/transcript$/;

/** Creates the worlds. */
export function sandboxWorld(deps: Dependencies): World {
  const { random, request_log } = deps;
  const { logs_requests } = sandboxOf(deps);
  const bodies = new LoggedBodies();
  return {
    around: storeTranscript(),
    inside: numberRequests((path) => TRANSCRIPT.test(path)),

    checkLive(headers) {
      if (!headers.has(FAULT_HEADER)) return;
      throw new ApiError(
        "test_key_required",
        `The header "${FAULT_HEADER}" takes test keys only: use a key that has "_test_" in its text`,
      );
    },

    read(c, { route, sent_id, idempotency_key }) {
      const faults = new FaultOfRequest(
        c,
        readFaultHeader(c.req.raw),
        () => faultThing(route, sent_id, idempotency_key),
      );
      return (scope, decide) =>
        withPresentSettings(
          c,
          scope,
          (access, settings) =>
            faults.decide(access, settings, !route.without_faults, (access) => {
              const state = c.get("state");
              const source = sourceOf(state, access.version, random);
              return decide(access, {
                random: source.random,
                order_ms: source.order_ms,
                run_number: runOf(state)?.n ?? null,
                settings,
              });
            }),
        );
    },

    admit: (c, scope, ask) => withPresentSettings(c, scope, ask),

    responseTo: (c, error) => error instanceof ConnectionLost ? breakOff(c) : null,

    log(state, seen) {
      const entry = logs_requests ? requestLogEntry(state, seen, bodies) : null;
      if (entry) request_log.logRequest(entry);
    },
  };
}
