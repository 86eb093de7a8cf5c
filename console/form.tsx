/**
 * Forms that send one call. An error is shown at its field, and the fields keep their values. If
 * there is no response, the user can send the form again safely, because the request then has the
 * same idempotency key.
 */

import { type ComponentChildren, createContext } from "preact";
import { useContext, useEffect, useId, useRef, useState } from "preact/hooks";
import { type Call, change } from "./calls.ts";
import { concerns, type Failure, failureOf } from "./failure.ts";
import { FailureNotice } from "./notice.tsx";

/** The failure of the form that contains a field. */
export const FormFailure = createContext<Failure | null>(null);

/** The attributes of the control of a field. */
interface ControlAttributes {
  id: string;
  "aria-invalid"?: "true";
  "aria-describedby"?: string;
}

/**
 * A form. `build` returns the call with the given idempotency key. The heading of the page or of the
 * dialog names the form; `label` is for another form on the same page.
 */
export function Form<T>(props: {
  label?: string;
  build: (idempotency_key: string) => Call<T>;
  done: (response: T) => void;
  /** Handles errors that are a result for this form. Returns true if it has handled the error. */
  settle?: (error: unknown) => boolean;
  actions: (sending: boolean) => ComponentChildren;
  children: ComponentChildren;
}) {
  const [failure, setFailure] = useState<Failure | null>(null);
  const [sending, setSending] = useState(false);
  const unanswered = useRef<{ body: string; key: string } | null>(null);
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
      const body = JSON.stringify(props.build("").args);
      const again = unanswered.current?.body === body;
      const key = again ? unanswered.current!.key : crypto.randomUUID();
      unanswered.current = { body, key };
      const response = await change(props.build(key));
      unanswered.current = null;
      props.done(response);
    } catch (error) {
      const found = failureOf(error);
      if (found.kind !== "unanswered") unanswered.current = null;
      if (!props.settle?.(error)) setFailure(found);
    } finally {
      setSending(false);
    }
  };

  return (
    <form ref={form} class="form" aria-label={props.label} noValidate onSubmit={submit}>
      <FormFailure.Provider value={failure}>
        {failure && <FailureNotice failure={failure} retries />}
        {props.children}
      </FormFailure.Provider>
      <div class="actions">{props.actions(sending)}</div>
    </form>
  );
}

/** A labelled control with its hint and its error. */
function Field(props: {
  label: string;
  /** The names of the field in errors of the API. */
  params: readonly string[];
  hint?: ComponentChildren;
  optional?: boolean;
  class?: string;
  children: (attributes: ControlAttributes) => ComponentChildren;
}) {
  const id = useId();
  const failure = useContext(FormFailure);
  const fault = concerns(failure, props.params) ? failure : null;
  const described = [fault && `${id}-error`, props.hint && `${id}-hint`].filter(Boolean).join(" ");
  return (
    <div class={`field ${props.class ?? ""}`}>
      <label for={id}>
        {props.label}
        {props.optional && <span class="optional">optional</span>}
      </label>
      {props.children({
        id,
        ...(fault && { "aria-invalid": "true" }),
        ...(described && { "aria-describedby": described }),
      })}
      {fault && <FieldFault id={`${id}-error`} failure={fault} />}
      {props.hint && <p class="hint" id={`${id}-hint`}>{props.hint}</p>}
    </div>
  );
}

/** The error below a field. */
export function FieldFault({ id, failure }: { id: string; failure: Failure }) {
  return (
    <p class="fault" id={id}>
      {failure.message}
      {failure.code && <code>{failure.code}</code>}
    </p>
  );
}

/** A text field. The caller stores its value. */
export function TextField(props: {
  label: string;
  params: readonly string[];
  value: string;
  set: (value: string) => void;
  hint?: ComponentChildren;
  optional?: boolean;
  class?: string;
  mono?: boolean;
  inputMode?: "decimal" | "numeric" | "email" | "url";
  list?: string;
  placeholder?: string;
}) {
  return (
    <Field {...props}>
      {(attributes) => (
        <input
          {...attributes}
          type="text"
          class={props.mono ? "mono" : undefined}
          value={props.value}
          autoComplete="off"
          spellcheck={false}
          inputMode={props.inputMode}
          list={props.list}
          placeholder={props.placeholder}
          onInput={(event) => props.set(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}

/** A text field of several lines. The caller stores its value. */
export function TextAreaField(props: {
  label: string;
  params: readonly string[];
  value: string;
  set: (value: string) => void;
  hint?: ComponentChildren;
}) {
  return (
    <Field {...props}>
      {(attributes) => (
        <textarea
          {...attributes}
          rows={4}
          value={props.value}
          autoComplete="off"
          onInput={(event) => props.set(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}

/** A select field. The empty value means that nothing is chosen. */
export function SelectField(props: {
  label: string;
  params: readonly string[];
  value: string;
  set: (value: string) => void;
  options: readonly (readonly [value: string, label: string])[];
  hint?: ComponentChildren;
  optional?: boolean;
  class?: string;
}) {
  return (
    <Field {...props}>
      {(attributes) => (
        <select
          {...attributes}
          value={props.value}
          onChange={(event) => props.set(event.currentTarget.value)}
        >
          {props.options.map(([value, label]) => (
            <option key={value} value={value} selected={value === props.value}>{label}</option>
          ))}
        </select>
      )}
    </Field>
  );
}

/** A group of radio buttons. With `heading` its label is a visible heading. */
export function Choices<V extends string>(props: {
  label: string;
  heading?: boolean;
  name: string;
  value: V;
  set: (value: V) => void;
  options: readonly { value: V; label: ComponentChildren }[];
  class?: string;
}) {
  return (
    <fieldset class={`choices ${props.class ?? ""}`}>
      <legend>{props.heading ? <h2>{props.label}</h2> : props.label}</legend>
      <div class="options">
        {props.options.map(({ value, label }) => (
          <label key={value} class="option">
            <input
              type="radio"
              name={props.name}
              value={value}
              checked={value === props.value}
              onChange={() => props.set(value)}
            />
            <span>{label}</span>
          </label>
        ))}
      </div>
    </fieldset>
  );
}
