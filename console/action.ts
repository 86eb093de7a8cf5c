/** Actions of buttons outside of forms. */

import { useState } from "preact/hooks";
import { ApiError } from "../client/mod.ts";
import { type Call, change } from "./calls.ts";
import { type Failure, failureOf } from "./failure.ts";
import { clearFlash, showDecline, showFlash } from "./flash.tsx";

/**
 * Runs the actions of buttons, one at a time, and keeps the failure of the last one. `run` reports
 * whether the action has succeeded.
 */
export function useAction() {
  const [failure, setFailure] = useState<Failure | null>(null);
  const [running, setRunning] = useState(false);
  const run = async (described: Call<unknown>, done_text: string): Promise<boolean> => {
    if (running) return false;
    setRunning(true);
    setFailure(null);
    clearFlash();
    try {
      await change(described);
      showFlash(done_text);
      return true;
    } catch (error) {
      if (error instanceof ApiError && error.payment) showDecline(error);
      else setFailure(failureOf(error));
      return false;
    } finally {
      setRunning(false);
    }
  };
  return { failure, running, run };
}
