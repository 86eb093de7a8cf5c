/** The fields of a test card. The page of a live checkout has none: the provider draws them. */

import { cardBrand, normalizeCardNumber } from "../../../shared/core/card_number.ts";
import { useWords } from "../data/words.ts";
import { type FieldProps, TextField } from "./fields.tsx";

const DIGITS = { inputMode: "numeric", spellcheck: false } as const;

/** Test cards that a payer can choose by a button. */
const CARDS = [
  ["4242 4242 4242 4242", "test_approve"],
  ["4000 0025 0000 3155", "test_authenticate"],
  ["4000 0000 0000 0002", "test_decline"],
] as const;

export function CardFields(form: FieldProps) {
  const { say } = useWords();
  const fill = (number: string) => {
    form.set("card_number", number);
    form.set("expiry", "12 / 34");
    form.set("cvc", "123");
  };
  return (
    <>
      <TextField
        name="card_number"
        format={inGroups}
        input={{ ...DIGITS, autocomplete: "cc-number", maxLength: 23 }}
        {...form}
      />
      <div class="pair">
        <TextField
          name="expiry"
          hint="expiry_hint"
          format={withSlash}
          input={{ ...DIGITS, autocomplete: "cc-exp", maxLength: 9 }}
          {...form}
        />
        <TextField
          name="cvc"
          hint="cvc_hint"
          input={{ ...DIGITS, autocomplete: "cc-csc", maxLength: 4 }}
          {...form}
        />
      </div>
      <TestValues title={say("test_cards")}>
        {CARDS.map(([number, result]) => (
          <TestValue
            key={number}
            value={number}
            result={say(result)}
            onUse={() => fill(number)}
          />
        ))}
      </TestValues>
    </>
  );
}

/** A folded list of test values, for whoever tries the page. */
export function TestValues(
  { title, children }: { title: string; children: preact.ComponentChildren },
) {
  return (
    <details class="test-values">
      <summary>{title}</summary>
      <ul>{children}</ul>
    </details>
  );
}

export function TestValue({ value, result, onUse }: {
  value: string;
  result: string;
  onUse(): void;
}) {
  const { say } = useWords();
  return (
    <li>
      <button type="button" class="plain" onClick={onUse}>
        {say("use", { value })}
      </button>{" "}
      <span class="hint">{result}</span>
    </li>
  );
}

/** Writes a card number in groups as on the card. */
function inGroups(text: string): string {
  const digits = normalizeCardNumber(text);
  const groups = cardBrand(digits) === "amex" ? /^(.{4})(.{1,6})?(.+)?$/ : null;
  if (groups === null) return digits.replace(/(.{4})(?=.)/g, "$1 ");
  return digits.replace(groups, (...parts) => parts.slice(1, 4).filter(Boolean).join(" "));
}

/** Writes `0829` as `08 / 29`. */
function withSlash(text: string): string {
  const [, month, year] = /^(\d{2})[ /]*(\d+)$/.exec(text.trim()) ?? [];
  return month === undefined ? text : `${month} / ${year}`;
}
