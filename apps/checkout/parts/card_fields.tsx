/** The fields of a test card. The page of a live checkout has none: the provider draws them. */

import { useWords } from "../data/words.ts";
import { type FieldProps, TextField } from "./fields.tsx";

/** Test cards that a payer can choose by a button. */
const CARDS = [
  ["4242 4242 4242 4242", "test_approve"],
  ["4000 0025 0000 3155", "test_authenticate"],
  ["4000 0000 0000 0002", "test_decline"],
] as const;

export function CardFields(form: FieldProps) {
  const { say } = useWords();
  return (
    <>
      <TextField name="card_number" {...form} />
      <div class="pair">
        <TextField name="expiry" {...form} />
        <TextField name="cvc" {...form} />
      </div>
      <TestValues
        title={say("test_cards")}
        values={CARDS.map(([value, result]) => [value, say(result)])}
        onUse={(number) => {
          form.set("card_number", number);
          form.set("expiry", "12 / 34");
          form.set("cvc", "123");
        }}
      />
    </>
  );
}

/** A folded list of test values, for whoever tries the page. */
export function TestValues({ title, values, onUse }: {
  title: string;
  values: [value: string, result: string][];
  onUse(value: string): void;
}) {
  const { say } = useWords();
  return (
    <details class="test-values">
      <summary>{title}</summary>
      <ul>
        {values.map(([value, result]) => (
          <li key={value}>
            <button type="button" class="plain" onClick={() => onUse(value)}>
              {say("use", { value })}
            </button>{" "}
            <span class="hint">{result}</span>
          </li>
        ))}
      </ul>
    </details>
  );
}
