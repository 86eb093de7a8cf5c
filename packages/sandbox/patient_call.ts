/** Calls of commands that run for a long time: they outlast a restart of the service. */

import { ApiError, PaymentsError, UnexpectedResponseError } from "../client/mod.ts";
import { pause } from "./stop_signal.ts";

/** Time between two calls of a service that does not respond. */
const AGAIN_MS = 2_000;

/** Calls a service that can stop responding for a time. */
export class PatientCaller {
  readonly #stop: AbortSignal;
  readonly #printMessage: (line: string) => void;
  #is_down = false;

  /**
   * @param stop ends the calls
   * @param printMessage receives a line when the service stops responding, and one when it responds
   * again
   */
  constructor(stop: AbortSignal, printMessage: (line: string) => void) {
    this.#stop = stop;
    this.#printMessage = printMessage;
  }

  /**
   * Repeats a call while the service does not respond, is overloaded or fails.
   * @returns the result, or null after the stop
   * @throws {PaymentsError} if a repetition cannot succeed
   */
  async call<T>(send: (stop: AbortSignal) => PromiseLike<T>): Promise<T | null> {
    while (!this.#stop.aborted) {
      try {
        const result = await send(this.#stop);
        if (this.#is_down) this.#printMessage("The service responds again");
        this.#is_down = false;
        return result;
      } catch (error) {
        if (this.#stop.aborted) return null;
        if (!isPassing(error)) throw error;
        if (!this.#is_down) {
          this.#printMessage(
            `${(error as Error).message}. Trying again until the service responds`,
          );
        }
        this.#is_down = true;
        const wanted_ms = error instanceof ApiError ? error.retryAfterMs ?? 0 : 0;
        await pause(Math.max(AGAIN_MS, wanted_ms), this.#stop);
      }
    }
    return null;
  }
}

/** Whether the same request can succeed later. */
function isPassing(error: unknown): boolean {
  if (error instanceof ApiError || error instanceof UnexpectedResponseError) {
    return error.status === 429 || error.status >= 500;
  }
  return error instanceof PaymentsError;
}
