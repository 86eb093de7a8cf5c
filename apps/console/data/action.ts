/** Actions of buttons outside of forms. */

import { useState } from "preact/hooks";
import { ApiError } from "../../../packages/client/mod.ts";
import { change } from "./calls.ts";
import { type Failure, failureOf } from "./failure.ts";
import { clearFlash, showDecline, showFlash } from "./flash.ts";
import { type Build, retryKey } from "./retry_key.ts";

/**
 * Runs the actions of buttons, one at a time, and keeps the failure of the last one. `run` reports
 * whether the action has succeeded. After a failure that leaves its effect open, the same action has
 * the same idempotency key.
 */
export function useAction() {
  const [failure, setFailure] = useState<Failure | null>(null);
  const [running, setRunning] = useState(false);
  const run = async (build: Build<unknown>, done_text: string): Promise<boolean> => {
    if (running) return false;
    const { key, settle } = retryKey(build);
    setRunning(true);
    setFailure(null);
    clearFlash();
    try {
      await change(build({ idempotencyKey: key }));
      settle(null);
      showFlash(done_text);
      return true;
    } catch (error) {
      const found = failureOf(error);
      settle(found);
      if (error instanceof ApiError && error.payment) showDecline(error);
      else setFailure(found);
      return false;
    } finally {
      setRunning(false);
    }
  };
  return { failure, running, run };
}
