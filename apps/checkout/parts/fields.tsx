/** Fields of the forms, and the list of their errors that takes the focus. */

import type { InputHTMLAttributes } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { cardBrand, normalizeCardNumber } from "../../../shared/core/card_number.ts";
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

type TextInput = InputHTMLAttributes<HTMLInputElement> & {
  hint?: Key;
  /** Writes the text as people read it, while the payer types at its end. */
  format?(text: string): string;
};

const DIGITS = { inputMode: "numeric", spellcheck: false } as const;
/** The text fields by their names, which are those of their labels too. */
const INPUTS = {
  card_number: { ...DIGITS, autocomplete: "cc-number", maxLength: 23, format: cardNumberInGroups },
  expiry: {
    ...{ ...DIGITS, autocomplete: "cc-exp", maxLength: 9 },
    ...{ hint: "expiry_hint", format: withSlash },
  },
  cvc: { ...DIGITS, autocomplete: "cc-csc", maxLength: 4, hint: "cvc_hint" },
  iban: {
    ...{ autocomplete: "off", spellcheck: false, maxLength: 42 },
    ...{ hint: "iban_hint", format: ibanInGroups },
  },
  holder: { autocomplete: "name", maxLength: 70 },
  street: { autocomplete: "address-line1", maxLength: 70 },
  postal_code: { autocomplete: "postal-code", maxLength: 16 },
  city: { autocomplete: "address-level2", maxLength: 35 },
} satisfies Partial<Record<Key, TextInput>>;

/** A text field with its label, hint and error. */
export function TextField({ name, values, faults, set }: FieldProps & {
  name: keyof typeof INPUTS;
}) {
  const { say } = useWords();
  const fault = faults[name];
  const { hint, format, ...input }: TextInput = INPUTS[name];
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

/** Writes a card number in groups as on the card. */
function cardNumberInGroups(text: string): string {
  const digits = normalizeCardNumber(text);
  const groups = cardBrand(digits) === "amex" ? /^(.{4})(.{1,6})?(.+)?$/ : null;
  if (groups === null) return inFours(digits);
  return digits.replace(groups, (...parts) => parts.slice(1, 4).filter(Boolean).join(" "));
}

function ibanInGroups(text: string): string {
  return inFours(text.toUpperCase().replace(/\s/g, ""));
}

/** Writes a text in groups of four. */
export function inFours(text: string): string {
  return text.replace(/(.{4})(?=.)/g, "$1 ");
}

/** Writes `0829` as `08 / 29`. */
function withSlash(text: string): string {
  const [, month, year] = /^(\d{2})[ /]*(\d+)$/.exec(text.trim()) ?? [];
  return month === undefined ? text : `${month} / ${year}`;
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
