/** A choice of test values: tiles with the result that each value has. */

import { Fragment } from "preact";
import {
  OF_COLLECTIONS,
  TEST_IBANS,
  TEST_RESULTS,
  TEST_TOKENS,
  type TestValue,
} from "../../../shared/domain/providers/test_values.ts";
import { Choices } from "./fields.tsx";
import { label } from "../data/words.ts";

/** A value to be picked, with the result that a payment or a transfer with it has. */
interface Tile {
  value: string;
  name: string;
  result: string;
}

export function tileOf({ value, name, behaviour }: TestValue): Tile {
  return { value, name, result: TEST_RESULTS[behaviour].result };
}

/** Returns the tiles of the test IBANs. Some have their result only if the merchant collects. */
export function ibanTiles(is_collected: boolean) {
  return TEST_IBANS.filter(({ behaviour }) => is_collected || !OF_COLLECTIONS.has(behaviour))
    .map((iban) => ({ ...tileOf(iban), rail: iban.kind }));
}

/**
 * A choice of test values, named after the field that it fills. The user can change the chosen
 * value in the fields below.
 */
export function TestValues<V extends Tile>(props: {
  label: string;
  params: readonly string[];
  values: readonly V[];
  value: string;
  set: (value: string) => void;
  /** Changes more than the field. */
  pick?: (value: V) => void;
}) {
  const { label: name, params: [param], values, value, set, pick } = props;
  return (
    <Choices
      label={name}
      name={param!}
      class="tiles"
      value={value}
      set={(chosen) => pick ? pick(values.find(({ value }) => value === chosen)!) : set(chosen)}
      options={values.map(({ value, name, result }) => [
        value,
        <Fragment key={value}>
          <span class="tile-name">{name}</span>
          {value.toLowerCase() !== name.toLowerCase() && <code>{shortValue(value)}</code>}
          {label(result) !== name && <span class="tile-result">{label(result)}</span>}
        </Fragment>,
      ])}
    />
  );
}

/** A long number, shortened to its first and last characters. The start of a token is cut. */
function shortValue(value: string): string {
  if (value in TEST_TOKENS) return value.replace("pm_card_", "…");
  return value.startsWith("0x")
    ? `${value.slice(0, 6)}…${value.slice(-4)}`
    : /^\d/.test(value)
    ? `···· ${value.slice(-5).trim().slice(-4)}`
    : `${value.slice(0, 4)} ···· ${value.replaceAll(" ", "").slice(-4)}`;
}
