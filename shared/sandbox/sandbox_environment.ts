/**
 * The environment of requests with a test key. Beyond a live one it has a clock of its own, a seed
 * with a transcript, declared faults, and a log of its requests.
 */

import type { RequestEnvironment } from "../http/request_state.ts";
import { LoggedBodies } from "./logged_bodies.ts";
import { breakOff, ConnectionLost, FaultOfRequest } from "./request_faults.ts";
import { requestLogEntry } from "./request_log_entry.ts";
import type { SandboxDependencies } from "./sandbox.ts";
import { numberRequest, storeTranscript, valuesOf } from "./seeded_run.ts";

export function sandboxEnvironment(deps: SandboxDependencies): RequestEnvironment {
  const { random, request_log, sandbox: { logs_requests, known_settings, faults } } = deps;
  const bodies = new LoggedBodies();
  return {
    begin: (c) => numberRequest(c, deps.sandbox),

    read(c, requested) {
      const fault = new FaultOfRequest(c, faults, requested);
      return (scope, decide) =>
        known_settings.decide(c, scope, (access, settings) =>
          fault.decide(
            access,
            settings,
            (access) => decide(access, valuesOf(c.get("state"), settings, random)),
          ));
    },

    admit: (c, scope, ask) => known_settings.decide(c, scope, ask),

    responseTo: (c, error) => error instanceof ConnectionLost ? breakOff(c) : null,

    end: (c) => storeTranscript(c, deps.sandbox),

    log(state, observed) {
      const entry = logs_requests ? requestLogEntry(state, observed, bodies) : null;
      if (entry) request_log.logRequest(entry);
    },
  };
}
