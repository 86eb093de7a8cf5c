/** Faults that a test plants. They are kept in memory, so the kill of the double ends them. */

import type { ServerResponse } from "node:http";

/** An injected fault. It meets `times` calls that match. */
export interface Fault {
  /** Names the fault in the list of those that still wait. */
  name?: string;
  method?: string;
  /** A regular expression for the path. */
  path?: string;
  /** Number of calls; 1 by default. */
  times?: number;
  /** Before the work, between localstripe's work and the commit, or after the commit. */
  at: "before" | "engine" | "after";
  delay_ms?: number;
  /**
   * `delay` only waits; `kill` ends the double with SIGKILL; `lose` closes the connection without
   * a response, `cut` within it; `hang` leaves it open; `twice` (before the work) works as if the
   * call had arrived twice, and sends the second response.
   */
  act:
    | "delay"
    | "lose"
    | "cut"
    | "hang"
    | "kill"
    | "error"
    | "rate_limit"
    | "html"
    | "huge"
    | "twice";
  /** Whether the idempotency key keeps the error, as Stripe keeps a 500 of a call it had begun. */
  keep?: boolean;
}

/** The response of Stripe's servers in trouble. */
export const SERVER_ERROR = JSON.stringify({
  error: { type: "api_error", message: "An unknown error occurred" },
});
const RATE_LIMIT = JSON.stringify({
  error: { type: "invalid_request_error", code: "rate_limit", message: "Request rate limit" },
});
const HUGE_BYTES = 10 * 1024 * 1024;
const JSON_TYPE = "application/json";
/** The client has read the first part of a cut response by then. */
const CUT_AFTER_MS = 20;

/** The faults that wait for their calls. */
export class Faults {
  #waiting: Fault[] = [];

  /** Adds faults. */
  plant(faults: readonly Fault[]): void {
    this.#waiting.push(...faults.map((fault) => ({ ...fault, times: fault.times ?? 1 })));
  }

  /** Returns the names of the faults that have not met all their calls. */
  waiting(): string[] {
    return this.#waiting.flatMap(({ name, times }) => name !== undefined && times! > 0 ? name : []);
  }

  /** Removes all faults. */
  clear(): void {
    this.#waiting = [];
  }

  /** Returns the fault that a call meets now, after its delay, or null. */
  async meet(at: Fault["at"], method: string, path: string): Promise<Fault | null> {
    const fault = this.#waiting.find((f) =>
      f.at === at && f.times! > 0 && (f.method ?? method) === method &&
      new RegExp(f.path ?? "").test(path)
    );
    if (!fault) return null;
    fault.times!--;
    if (fault.delay_ms) await new Promise((resolve) => setTimeout(resolve, fault.delay_ms));
    if (fault.act === "kill") Deno.kill(Deno.pid, "SIGKILL");
    return fault.act === "delay" ? null : fault;
  }
}

/** Gives a call its fault in place of a response. */
export function respondWithFault({ act }: Fault, response: ServerResponse): void {
  const send = (status: number, type: string, body: string) =>
    void response.writeHead(status, { "content-type": type, "stripe-should-retry": "false" })
      .end(body);
  switch (act) {
    case "error":
      return send(500, JSON_TYPE, SERVER_ERROR);
    case "rate_limit":
      return send(429, JSON_TYPE, RATE_LIMIT);
    case "html":
      return send(200, "text/html", "<!doctype html><title>Maintenance</title>");
    case "huge":
      return send(200, JSON_TYPE, JSON.stringify({ id: "x".repeat(HUGE_BYTES) }));
    case "cut":
      response.writeHead(200, { "content-type": JSON_TYPE, "content-length": "1000" });
      response.write('{"id":"pi_');
      return void setTimeout(() => response.socket?.destroy(), CUT_AFTER_MS);
    case "lose":
      return void response.socket?.destroy();
  }
}
