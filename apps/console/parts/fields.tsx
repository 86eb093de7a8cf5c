/** The fields of forms: a labelled control with its hint, and the error that concerns it. */

import { type ComponentChildren, createContext, type TargetedEvent } from "preact";
import { useContext, useId } from "preact/hooks";
import { concerns, type Failure } from "../data/failure.ts";
import { currencyDigits } from "../data/money.ts";

export const FormFailure = createContext<Failure | null>(null);

interface ControlAttributes {
  id: string;
  "aria-invalid"?: "true";
  "aria-describedby"?: string;
}

interface FieldProps {
  label: string;
  /** The names of the field in errors of the API. */
  params: readonly string[];
  hint?: ComponentChildren;
  optional?: boolean;
  class?: string;
}

/** A field whose caller stores its value. */
interface ValueProps extends FieldProps {
  value: string;
  set: (value: string) => void;
}

export function useFault(params: readonly string[]): Failure | null {
  const failure = useContext(FormFailure);
  return concerns(failure, params) ? failure : null;
}

/** A labelled control with its hint and its error. */
function Field(
  props: FieldProps & { children: (attributes: ControlAttributes) => ComponentChildren },
) {
  const id = useId();
  const fault = useFault(props.params);
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

export function FieldFault({ id, failure }: { id: string; failure: Failure }) {
  return (
    <p class="fault" id={id}>
      {failure.message}
      {failure.code && <code>{failure.code}</code>}
    </p>
  );
}

/** A text field; with `rows` it has that many lines. */
export function TextField(
  props: ValueProps & {
    rows?: number;
    mono?: boolean;
    inputMode?: "decimal" | "numeric" | "email" | "url";
    list?: string | undefined;
    placeholder?: string;
  },
) {
  const { rows, mono = false, value, set, inputMode, list, placeholder } = props;
  return (
    <Field {...props}>
      {(attributes) => {
        const control = {
          ...attributes,
          class: mono ? "mono" : undefined,
          value,
          autoComplete: "off" as const,
          spellcheck: rows !== undefined && !mono,
          onInput: (event: TargetedEvent<HTMLInputElement | HTMLTextAreaElement>) =>
            set(event.currentTarget.value),
        };
        return rows === undefined
          ? <input {...control} type="text" {...{ inputMode, list, placeholder }} />
          : <textarea {...control} rows={rows} />;
      }}
    </Field>
  );
}

export type Option = readonly [value: string, label: string];

/** Returns options whose labels are the values, or `textOf` them. */
export function optionsOf(
  values: readonly string[],
  textOf: (value: string) => string = String,
): Option[] {
  return values.map((value) => [value, textOf(value)]);
}

/** A select field. The empty value means that nothing is chosen. */
export function SelectField(props: ValueProps & { options: readonly Option[] }) {
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

/** A list to choose from beside its label, outside of forms. */
export function InlineSelect(
  props: Pick<ValueProps, "label" | "value" | "set"> & { options: readonly Option[] },
) {
  return (
    <label class="inline">
      <span>{props.label}</span>
      <select value={props.value} onChange={(event) => props.set(event.currentTarget.value)}>
        {props.options.map(([value, label]) => <option key={value} value={value}>{label}</option>)}
      </select>
    </label>
  );
}

/** Seconds that the older secrets of a key or an endpoint still work, with labels. */
const OVERLAPS: readonly Option[] = [
  ["0", "Now"],
  ["3600", "After one hour"],
  ["86400", "After one day"],
  ["604800", "After 7 days"],
];

/** The time after which older secrets end. */
export function OverlapField(props: ValueProps) {
  return <SelectField {...props} options={OVERLAPS} />;
}

/**
 * The amount and the currency of a form. `field` returns the properties of a field of its draft.
 * @param props.hint by default the decimals of the currency
 * @param props.currencies suggestions; the user can type any other
 */
export function AmountFields(props: {
  field: (name: "amount" | "currency", label: string, ...params: string[]) => ValueProps;
  hint?: ComponentChildren;
  currencies?: readonly string[];
}) {
  const { field, currencies } = props;
  const currency = field("currency", "Currency");
  return (
    <div class="row">
      <TextField
        {...field("amount", "Amount", "amount", "amount_minor")}
        inputMode="decimal"
        hint={props.hint ?? `At most ${currencyDigits(currency.value)} decimals`}
      />
      <TextField
        {...currency}
        class="short"
        list={currencies && "currencies"}
        hint="ISO code, USDC, USDT"
      />
      {currencies && (
        <datalist id="currencies">
          {currencies.map((code) => <option key={code} value={code} />)}
        </datalist>
      )}
    </div>
  );
}

/** A group of boxes to check. */
export function Boxes<N extends string>(props: {
  label: string;
  /** The name of the list in errors of the API. */
  param: string;
  names: readonly N[];
  chosen: readonly N[];
  set: (chosen: readonly N[]) => void;
}) {
  const { label, param, names, chosen, set } = props;
  const fault = useFault([param]);
  return (
    <fieldset class="boxes">
      <legend>{label}</legend>
      {names.map((name) => (
        <label key={name}>
          <input
            type="checkbox"
            checked={chosen.includes(name)}
            aria-invalid={fault ? "true" : undefined}
            onChange={({ currentTarget: { checked } }) =>
              set(checked ? [...chosen, name] : chosen.filter((other) => other !== name))}
          />
          <code>{name}</code>
        </label>
      ))}
      {fault && <FieldFault id={`${param}-error`} failure={fault} />}
    </fieldset>
  );
}

/** A group of radio buttons. With `heading` its label is a visible heading. */
export function Choices<V extends string>(props: {
  label: string;
  heading?: boolean;
  name: string;
  value: V;
  set: (value: V) => void;
  options: readonly (readonly [value: V, label: ComponentChildren])[];
  /** The look, by default `segments`. */
  class?: string;
}) {
  return (
    <fieldset class={`choices ${props.class ?? "segments"}`}>
      <legend>{props.heading ? <h2>{props.label}</h2> : props.label}</legend>
      <div class="options">
        {props.options.map(([value, label]) => (
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
