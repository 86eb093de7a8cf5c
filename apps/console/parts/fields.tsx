/** The fields of forms: a labelled control with its hint, and the error that concerns it. */

import { type ComponentChildren, createContext } from "preact";
import { useContext, useId } from "preact/hooks";
import { concerns, type Failure } from "../data/failure.ts";

/** The failure of the form that contains a field. */
export const FormFailure = createContext<Failure | null>(null);

/** The attributes of the control of a field. */
interface ControlAttributes {
  id: string;
  "aria-invalid"?: "true";
  "aria-describedby"?: string;
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
  /** Visible lines. By default 4. */
  rows?: number;
  mono?: boolean;
}) {
  return (
    <Field {...props}>
      {(attributes) => (
        <textarea
          {...attributes}
          class={props.mono ? "mono" : undefined}
          spellcheck={!props.mono}
          rows={props.rows ?? 4}
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
