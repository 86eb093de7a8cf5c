/** Actions of buttons outside of forms. */

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { ApiError } from "../../../packages/client/mod.ts";
import { change } from "../data/calls.ts";
import { type Failure, failureOf } from "../data/failure.ts";
import { clearFlash, showDecline, showFlash } from "../data/flash.ts";
import { FailureNotice } from "./notice.tsx";
import { may, type Need, refusalOfCall } from "../data/permissions.ts";
import { type Build, retryKey } from "../data/retry_key.ts";

/** The actions of the buttons of a place. */
export interface Action {
  running: boolean;
  /** Reports whether the action has succeeded. */
  run: (build: Build<unknown>, done_text: string) => Promise<boolean>;
  /** The failure of the last action. */
  notice: ComponentChildren;
}

/**
 * Runs the actions of buttons, one at a time. After a failure that leaves its effect open, the same
 * action has the same idempotency key.
 */
export function useAction(): Action {
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
  return { running, run, notice: failure && <FailureNotice failure={failure} /> };
}

/**
 * A button that runs an action, if the key may make its call. `done` is the message after it.
 * @param props.needs a scope besides that of the call
 */
export function ActionButton(props: {
  of: Action;
  needs?: Need;
  build: Build<unknown>;
  done: string;
  class?: string;
  label?: string;
  title?: string;
  children: ComponentChildren;
}) {
  const { of: { running, run }, needs, build, done } = props;
  if (refusalOfCall(build({})) || (needs && !may(needs))) return null;
  return (
    <button
      type="button"
      class={props.class}
      aria-label={props.label}
      title={props.title}
      aria-disabled={running}
      onClick={() => run(build, done)}
    >
      {props.children}
    </button>
  );
}
