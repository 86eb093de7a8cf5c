/**
 * Faults of API requests in a sandbox (contract §7): declared ones, and the one that the header
 * `Sandbox-Fault` asks for. A fault comes after all checks of the form of the request, so a request
 * that is refused for its form uses none up.
 */

import type { Context } from "hono";
import { ApiError, invalidParameter, tryAgain } from "../core/errors.ts";
import { FAULT_HEADER, FAULTS } from "../core/vocabulary.ts";
import {
  type Reply,
  type SandboxFault,
  withoutRateCount,
} from "../domain/changes/service_request.ts";
import { MAX_FAULT_DELAY_MS } from "../schema/limits.ts";
import type { FaultStore, FaultTarget, MatchedFault } from "./fault_store.ts";
import { timeIn } from "./known_settings.ts";
import type { Access } from "../store/outcome.ts";
import type { SandboxSettings } from "../store/sandbox_settings.ts";
import type { Env, Requested } from "../http/request_state.ts";

type RequestFault = Omit<MatchedFault<"request">, "id"> & SandboxFault;

/** The value of the header on a read that no declared fault concerns. */
const NO_FAULT = "none";

/** A fault that the client gets no response for. Everything that the request asks for is done. */
export class ConnectionLost extends Error {
  constructor() {
    super("The connection is lost, as a declared fault of the sandbox demands");
  }
}

/**
 * Reads the header `Sandbox-Fault` of a request: the name of a fault, and for a delay its duration:
 * `delay; delay_ms=500`. A read can send `none`. Null without the header. Throws
 * `invalid_parameter` for any other value.
 */
function readFaultHeader({ method, headers }: Request): RequestFault | "none" | null {
  const text = headers.get(FAULT_HEADER);
  if (text === null) return null;
  if (text.trim() === NO_FAULT) {
    if (method === "GET") return NO_FAULT;
    throw invalidParameter(
      FAULT_HEADER,
      `"${FAULT_HEADER}: ${NO_FAULT}" is for GET requests only: leave the header out, or delete ` +
        "the declared faults",
    );
  }
  const [, name, ms] = /^([a-z_]+)(?:; *delay_ms=(\d{1,6}))?$/.exec(text.trim()) ?? [];
  const fault = FAULTS.request.find((known) => known === name);
  if (fault === undefined || (ms !== undefined && fault !== "delay")) {
    throw invalidParameter(
      FAULT_HEADER,
      `"${FAULT_HEADER}" must be one of ${FAULTS.request.join(", ")}. A delay has its duration ` +
        'after it: "delay; delay_ms=500"',
    );
  }
  const delay_ms = ms === undefined ? null : Number(ms);
  if (fault === "delay" && (delay_ms === null || delay_ms < 1 || delay_ms > MAX_FAULT_DELAY_MS)) {
    throw invalidParameter(
      FAULT_HEADER,
      `The delay of "${FAULT_HEADER}" must be 1 to ${MAX_FAULT_DELAY_MS} milliseconds: send ` +
        '"delay; delay_ms=500"',
    );
  }
  return { id: null, fault, delay_ms };
}

/**
 * Returns the values of a request for the conditions of faults. A path in a condition can have the
 * id or `{id}`, and can begin with the name of the function. Aliases of an operation match as well.
 */
function targetOf({ route, sent_id, idempotency_key }: Requested): FaultTarget<"request"> {
  const paths = route.paths
    .flatMap((path) => [path.replace(":id", sent_id), path.replace(":id", "{id}")])
    .flatMap((path) => [path, `/${route.home}${path}`]);
  return {
    method: route.method,
    path: [...new Set(paths)],
    ...(idempotency_key !== null && { idempotency_key }),
  };
}

/** The fault of one request. It is the same for every decision of the request. */
export class FaultOfRequest {
  readonly #c: Context<Env>;
  readonly #faults: FaultStore;
  readonly #requested: Requested;
  /** True: the request can have a declared fault. */
  readonly #is_open: boolean;
  #fault: RequestFault | null;
  #has_waited = false;

  /** Throws `invalid_parameter` for a wrong header. */
  constructor(c: Context<Env>, faults: FaultStore, requested: Requested) {
    const sent = readFaultHeader(c.req.raw);
    this.#c = c;
    this.#faults = faults;
    this.#requested = requested;
    this.#is_open = sent === null && !requested.route.without_faults;
    this.#fault = sent === NO_FAULT ? null : sent;
  }

  /**
   * Decides the request, with its fault if it has one. Throws the errors of `decide`, the error of
   * the fault, and `ConnectionLost`. If the settings name faults of requests, it takes one.
   */
  decide<T>(
    access: Access,
    settings: SandboxSettings,
    decide: (access: Access) => Promise<T>,
  ): Promise<T> {
    const has_declared = this.#is_open && settings.fault_kinds.includes("request");
    return this.#fault === null && !has_declared
      ? decide(this.#counted(access))
      : this.#decideWithFault(access, settings, decide);
  }

  async #decideWithFault<T>(
    access: Access,
    settings: SandboxSettings,
    decide: (access: Access) => Promise<T>,
  ): Promise<T> {
    if (this.#fault === null) {
      this.#fault = await this.#faults.take(this.#counted(access), targetOf(this.#requested));
      this.#c.get("state").is_counted = true;
    }
    if (this.#fault === null) return await decide(this.#counted(access));
    return await this.#fail(
      this.#fault,
      access,
      () => decide(this.#present(this.#counted(access), settings)),
    );
  }

  #counted(access: Access): Access {
    return this.#c.get("state").is_counted ? withoutRateCount(access) : access;
  }

  /** The access at the present time, which a delay changes. */
  #present(access: Access, settings: SandboxSettings): Access {
    return { ...access, at_ms: timeIn(settings, this.#c.get("state").at_ms) };
  }

  async #fail<T>(
    { id, fault, delay_ms }: RequestFault,
    access: Access,
    decide: () => Promise<T>,
  ): Promise<T> {
    const state = this.#c.get("state");
    if (fault === "server_error_after" || fault === "connection_lost_after") {
      state.hidden_body = await done(decide);
    }
    state.sandbox_fault = { id, fault };
    switch (fault) {
      case "rate_limited":
        throw tryAgain(
          "rate_limited",
          "The sandbox limits this request because of a declared fault: try again later",
        );
      case "service_unavailable":
        throw tryAgain(
          "service_unavailable",
          "The sandbox is unavailable because of a declared fault: try again later",
        );
      case "server_error_before":
        throw new ApiError(
          "internal_error",
          "The sandbox fails because of a declared fault, before it has done anything: try again",
        );
      case "server_error_after":
        throw new ApiError(
          "internal_error",
          "The sandbox fails because of a declared fault, after it has processed the request: " +
            "send it again with the same Idempotency-Key",
        );
      case "connection_lost_after":
        throw new ConnectionLost();
      case "delay":
        if (!this.#has_waited) await this.#wait(access, delay_ms!);
        return await decide();
    }
  }

  /**
   * Waits without a database connection, after the database has admitted the key. Throws the errors
   * of admission, and `rate_limited` if too many requests of the account wait.
   */
  async #wait(access: Access, delay_ms: number): Promise<void> {
    const state = this.#c.get("state");
    const { store, clock, places } = this.#c.get("deps");
    if (!state.is_counted) await store.authenticate(access);
    state.is_counted = true;
    await places.long_waits.run(
      [store.tenants.nameOf(access.key_hash)],
      () => new Promise((resolve) => setTimeout(resolve, delay_ms)),
    );
    this.#has_waited = true;
    state.at_ms = clock();
    state.retries.restart();
  }
}

/** Errors after which the request was not processed, so they take the place of the fault. */
const NOT_PROCESSED: ReadonlySet<number> = new Set([401, 403, 429, 500, 503]);

/**
 * Processes the request. A refusal for its content counts as processed. Returns the body of the
 * response, which nobody gets; null: there is none.
 */
async function done(decide: () => Promise<unknown>): Promise<string | null> {
  try {
    const reply = await decide() as Partial<Reply> | undefined;
    // Nobody reads the rest of the body, which has a place until its end.
    await reply?.rest?.return(undefined);
    return reply?.response?.body ?? null;
  } catch (error) {
    if (!(error instanceof ApiError) || NOT_PROCESSED.has(error.status)) throw error;
    return null;
  }
}

/**
 * Ends the connection without a response, if the server of the function lets it: the local server
 * passes a function for that. Elsewhere the response begins and breaks off.
 */
export function breakOff(c: Context<Env>): Response {
  const { loseConnection } = (c.env ?? {}) as { loseConnection?: () => void };
  if (loseConnection) {
    loseConnection();
    return new Response(null, { status: 500 });
  }
  const broken = new ReadableStream({
    start: (controller) => controller.error(new ConnectionLost()),
  });
  return new Response(broken, { status: 500 });
}
