/**
 * Forms that send one call. An error is shown at its field, and the fields keep their values. If
 * there is no response, the user can send the form again safely, because the request then has the
 * same idempotency key.
 */

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { Dialog } from "./dialog.tsx";
import type { Kept } from "../data/draft.ts";
import { type Failure, failureOf } from "../data/failure.ts";
import { FormFailure } from "./fields.tsx";
import { addRetry, showFlash } from "../data/flash.ts";
import { FIRST_CHOICE, IdempotencyFields, ownKey, send } from "./idempotency.tsx";
import { Empty, FailureNotice } from "./notice.tsx";
import { Title } from "./page_parts.tsx";
import { type Build, retryKey } from "../data/retry_key.ts";
import { mayCreate } from "../data/permissions.ts";
import { hrefOfList } from "../data/route.ts";
import { createName, wordsOf } from "../data/titles.ts";

interface FormProps<T> {
  /** The name of the form, if neither the heading of the page nor that of the dialog names it. */
  label?: string;
  /** Returns the call with the given options. */
  build: Build<T>;
  done: (response: T) => void;
  /** Handles errors that are a result for this form. Returns true if it has handled the error. */
  settle?: (error: unknown) => boolean;
  /** The button that sends the form, and its text meanwhile; by default `Cancelling…`. */
  act: string;
  acting?: string;
  /** The class of this button, by default `primary`. */
  act_class?: string;
  /** Gets the name of the button that was pressed, if there are several. */
  pressed?: (name: string) => void;
  /** The buttons before and after this one. */
  before?: ComponentChildren;
  after?: ComponentChildren | ((sending: boolean) => ComponentChildren);
  /** Whether the button that sends the form has the focus at the beginning. */
  begins_at_act?: boolean;
  /** True: the form itself chooses the idempotency key, so it has no fields for it. */
  chooses_key?: boolean;
  /** What the tab keeps of the form. It is forgotten when the request has a result. */
  kept?: Kept;
  children?: ComponentChildren;
}

export function Form<T>(props: FormProps<T>) {
  const [failure, setFailure] = useState<Failure | null>(null);
  const [sending, setSending] = useState(false);
  const [choice, setChoice] = useState(FIRST_CHOICE);
  const form = useRef<HTMLFormElement>(null);

  useLayoutEffect(() => {
    if (!failure) return;
    // The fields render the failure after this component, in the same task.
    queueMicrotask(() => {
      const fault = form.current?.querySelector<HTMLElement>('[aria-invalid="true"]');
      (fault ?? form.current?.querySelector<HTMLElement>('[role="alert"]'))?.focus();
    });
  }, [failure]);

  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    if (sending) return;
    props.pressed?.((event.submitter as HTMLButtonElement | null)?.name ?? "");
    setSending(true);
    setFailure(null);
    try {
      const { key, settle } = retryKey(props.build, ownKey(choice));
      const { outcome, told } = await send(props.build, key, choice);
      const found = "error" in outcome ? failureOf(outcome.error) : null;
      settle(found);
      if ("error" in outcome && !props.settle?.(outcome.error)) setFailure(found);
      else props.kept?.forget();
      if (!("error" in outcome)) props.done(outcome.value);
      if (told !== null) addRetry(key, told);
    } catch (error) {
      // The form cannot become a request.
      setFailure(failureOf(error));
    } finally {
      setSending(false);
    }
  };

  const { label, act, acting = gerundOf(act), act_class = "primary", before, after } = props;
  return (
    <form ref={form} class="form" aria-label={label} noValidate onSubmit={submit}>
      <FormFailure.Provider value={failure}>
        {failure && <FailureNotice failure={failure} retries />}
        {props.kept?.is_restored && <Restored kept={props.kept} />}
        {props.children}
        {!props.chooses_key && <IdempotencyFields choice={choice} set={setChoice} />}
      </FormFailure.Provider>
      <div class="actions">
        {before}
        <button
          type="submit"
          class={act_class}
          aria-disabled={sending}
          autoFocus={props.begins_at_act ?? false}
        >
          {sending ? acting : act}
        </button>
        {typeof after === "function" ? after(sending) : after}
      </div>
    </form>
  );
}

/** Returns the verb of a button as what goes on: `Cancel payment` → `Cancelling…`. */
function gerundOf(act: string): string {
  const verb = act.split(" ")[0]!;
  return `${verb.replace(/e$|(?<=e)[lt]$/, (end) => end === "e" ? "" : end + end)}ing…`;
}

/** Says that the form has values of an earlier visit, and begins anew. */
function Restored({ kept }: { kept: Kept }) {
  return (
    <p class="quiet">
      You typed this before. Card numbers, CVCs and keys are not kept.
      <button type="button" class="plain" onClick={kept.restart}>Start again</button>
    </p>
  );
}

export interface FormDialogProps<T> extends Omit<FormProps<T>, "done"> {
  title: string;
  /** The message after the call, which closes the dialog. Null: the dialog stays open. */
  done: string | ((response: T) => string | null);
  close: () => void;
}

export function FormDialog<T>({ title, done, close, ...form }: FormDialogProps<T>) {
  const cancel = () => {
    form.kept?.forget();
    close();
  };
  const end = (response: T) => {
    const said = typeof done === "string" ? done : done(response);
    if (said === null) return;
    close();
    showFlash(said);
  };
  return (
    <Dialog title={title} close={close}>
      <Form after={<button type="button" onClick={cancel}>Cancel</button>} {...form} done={end} />
    </Dialog>
  );
}

/** The page that makes an item of a section. `preview` stands beside the form. */
export function FormPage<T>(
  props: FormProps<T> & { section: string; preview?: ComponentChildren },
) {
  const { section, preview, ...form } = props;
  if (!mayCreate(section)) {
    return (
      <>
        <Title crumb={section} title={createName(section)} />
        <Empty title={`The key of this page cannot make a ${wordsOf(section).one}`} />
      </>
    );
  }
  return (
    <>
      <Title crumb={section} title={createName(section)} />
      <div class={preview ? "beside" : "narrow"}>
        <Form
          after={
            <a class="button" href={hrefOfList(section)} onClick={form.kept?.forget}>Cancel</a>
          }
          {...form}
        />
        {preview}
      </div>
    </>
  );
}
