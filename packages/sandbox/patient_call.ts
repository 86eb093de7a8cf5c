/** Calls of commands that run for a long time: they outlast a restart of the service. */

import { ApiError, PaymentsError, UnexpectedResponseError } from "../client/mod.ts";
import { pause } from "./stop_signal.ts";

/** Time between two calls of a service that does not respond. */
const AGAIN_MS = 2_000;

/**
 * Makes a function that repeats a call while the service does not respond, is overloaded or fails.
 * It resolves to the result, or to null after the stop, and throws the `PaymentsError` of a call
 * that cannot succeed.
 * @param stop ends the calls
 * @param printMessage receives a line when the service stops responding, and one when it responds
 * again
 */
export function patientCaller(stop: AbortSignal, printMessage: (line: string) => void) {
  let is_down = false;
  return async <T>(send: (stop: AbortSignal) => PromiseLike<T>): Promise<T | null> => {
    while (!stop.aborted) {
      try {
        const result = await send(stop);
        if (is_down) printMessage("The service responds again");
        is_down = false;
        return result;
      } catch (error) {
        if (stop.aborted) return null;
        if (!isPassing(error)) throw error;
        const { message } = error as Error;
        if (!is_down) printMessage(`${message}. Trying again until the service responds`);
        is_down = true;
        const wanted_ms = error instanceof ApiError ? error.retryAfterMs ?? 0 : 0;
        await pause(Math.max(AGAIN_MS, wanted_ms), stop);
      }
    }
    return null;
  };
}

/** Whether the same request can succeed later. */
function isPassing(error: unknown): boolean {
  if (error instanceof ApiError || error instanceof UnexpectedResponseError) {
    return error.status === 429 || error.status >= 500;
  }
  return error instanceof PaymentsError;
}
