/** Fields of the forms, and the list of their errors that takes the focus. */

import type { InputHTMLAttributes } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import type { CheckoutPrice } from "../../../shared/schema/checkout.ts";
import { type Key, useWords } from "../data/words.ts";

/** The errors of a form by the names of its fields, in their order. */
export type Faults = Readonly<Record<string, Key>>;

/** What a form passes to each of its fields. */
export interface FieldProps {
  values: Readonly<Record<string, string>>;
  faults: Faults;
  set(name: string, value: string): void;
}

interface TextFieldProps extends FieldProps {
  name: Key;
  hint?: Key;
  input?: InputHTMLAttributes<HTMLInputElement>;
  /** Writes the text as people read it, while the payer types at its end. */
  format?(text: string): string;
}

/** A text field with its label, hint and error. */
export function TextField({ name, hint, input, format, values, faults, set }: TextFieldProps) {
  const { say } = useWords();
  const fault = faults[name];
  return (
    <div class="field">
      <label for={name}>{say(name)}</label>
      {hint && <p class="hint" id={`${name}-hint`}>{say(hint)}</p>}
      <input
        id={name}
        type="text"
        value={values[name] ?? ""}
        aria-invalid={fault !== undefined}
        aria-describedby={[fault && `${name}-fault`, hint && `${name}-hint`].filter(Boolean)
          .join(" ")}
        onInput={({ currentTarget: { value, selectionEnd } }) =>
          set(name, format && selectionEnd === value.length ? format(value) : value)}
        {...input}
      />
      <Fault name={name} fault={fault} />
    </div>
  );
}

/** The choice among prices, unless there is one only. */
export function PriceField({ prices, price, onChoose }: {
  prices: readonly CheckoutPrice[];
  price: CheckoutPrice;
  onChoose(price: CheckoutPrice): void;
}) {
  const { say, money } = useWords();
  if (prices.length < 2) return null;
  return (
    <div class="field">
      <label for="currency">{say("currency")}</label>
      <select
        id="currency"
        value={price.currency}
        onChange={({ currentTarget }) => onChoose(prices[currentTarget.selectedIndex]!)}
      >
        {prices.map(({ currency, amount_minor }) => (
          <option key={currency} value={currency}>{money(amount_minor, currency)}</option>
        ))}
      </select>
    </div>
  );
}

/** A box with its text, which can be required. */
export function Box({ name, text, values, faults, set }: FieldProps & {
  name: string;
  text: string;
}) {
  const fault = faults[name];
  return (
    <div class="field">
      <label class="box">
        <input
          id={name}
          type="checkbox"
          checked={values[name] === "yes"}
          aria-invalid={fault !== undefined}
          aria-describedby={fault && `${name}-fault`}
          onChange={({ currentTarget }) => set(name, currentTarget.checked ? "yes" : "")}
        />
        <span>{text}</span>
      </label>
      <Fault name={name} fault={fault} />
    </div>
  );
}

function Fault({ name, fault }: { name: string; fault: Key | undefined }) {
  const { say } = useWords();
  return fault ? <p class="fault" id={`${name}-fault`}>{say(fault)}</p> : null;
}

/** The errors of a form, with a link to each field. It takes the focus whenever `turn` changes. */
export function FaultList({ faults, turn }: { faults: Faults; turn: number }) {
  const { say } = useWords();
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => box.current?.focus(), [turn]);
  if (Object.keys(faults).length === 0) return null;
  return (
    <div class="notice bad" role="alert" tabIndex={-1} ref={box}>
      <h2>{say("problem")}</h2>
      <ul>
        {Object.entries(faults).map(([name, fault]) => (
          <li key={name}>
            <a
              href={`#${name}`}
              onClick={(event) => {
                // The fragment of the address has the token.
                event.preventDefault();
                document.getElementById(name)?.focus();
              }}
            >
              {say(fault)}
            </a>
          </li>
        ))}
      </ul>
    </div>
  );
}
