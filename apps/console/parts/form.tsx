/**
 * Forms that send one call. An error is shown at its field, and the fields keep their values. If
 * there is no response, the user can send the form again safely, because the request then has the
 * same idempotency key.
 */

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { type Failure, failureOf } from "../data/failure.ts";
import { FormFailure } from "./fields.tsx";
import { addRetry } from "../data/flash.ts";
import { FIRST_CHOICE, IdempotencyFields, ownKey, send } from "./idempotency.tsx";
import { FailureNotice } from "./notice.tsx";
import { type Build, retryKey } from "../data/retry_key.ts";

/**
 * A form. `build` returns the call with the given options. The heading of the page or of the
 * dialog names the form; `label` is for another form on the same page.
 */
export function Form<T>(props: {
  label?: string;
  build: Build<T>;
  done: (response: T) => void;
  /** Handles errors that are a result for this form. Returns true if it has handled the error. */
  settle?: (error: unknown) => boolean;
  actions: (sending: boolean) => ComponentChildren;
  /** True: the form itself chooses the idempotency key, so it has no fields for it. */
  chooses_key?: boolean;
  children: ComponentChildren;
}) {
  const [failure, setFailure] = useState<Failure | null>(null);
  const [sending, setSending] = useState(false);
  const [choice, setChoice] = useState(FIRST_CHOICE);
  const form = useRef<HTMLFormElement>(null);

  useEffect(() => {
    if (!failure) return;
    const fault = form.current?.querySelector<HTMLElement>('[aria-invalid="true"]');
    (fault ?? form.current?.querySelector<HTMLElement>('[role="alert"]'))?.focus();
  }, [failure]);

  const submit = async (event: Event) => {
    event.preventDefault();
    if (sending) return;
    setSending(true);
    setFailure(null);
    try {
      const { key, settle } = retryKey(props.build, ownKey(choice));
      const { outcome, told } = await send(props.build, key, choice);
      const found = "error" in outcome ? failureOf(outcome.error) : null;
      settle(found);
      if (!("error" in outcome)) props.done(outcome.value);
      else if (!props.settle?.(outcome.error)) setFailure(found);
      if (told !== null) addRetry(key, told);
    } catch (error) {
      // The form cannot become a request.
      setFailure(failureOf(error));
    } finally {
      setSending(false);
    }
  };

  return (
    <form ref={form} class="form" aria-label={props.label} noValidate onSubmit={submit}>
      <FormFailure.Provider value={failure}>
        {failure && <FailureNotice failure={failure} retries />}
        {props.children}
        {!props.chooses_key && <IdempotencyFields choice={choice} set={setChoice} />}
      </FormFailure.Provider>
      <div class="actions">{props.actions(sending)}</div>
    </form>
  );
}
