/** The filters of a list: a row of fields above it. Their values are in the query of the route. */

import type { TargetedEvent } from "preact";
import { useState } from "preact/hooks";
import { concerns, type Failure, failureOf, FieldError } from "../data/failure.ts";
import { FieldFault, type Option, optionsOf } from "./fields.tsx";
import { go, href } from "../data/route.ts";
import { SavedFilters } from "./saved_filters.tsx";
import { EXAMPLE_TIME, formatTime, NOT_A_TIME, parseTime, TIME_ZONE } from "../data/times.ts";
import { label as wordsOf } from "../data/words.ts";

export interface Filter {
  /** The name of the parameter of the API. */
  name: string;
  label: string;
  /** The values to choose from. Without them the filter is a field for text. */
  options?: readonly Option[];
  /** The choice without a value. By default "Any". */
  none?: string;
  placeholder?: string;
  /** The text is a time. The query of the route has it as RFC 3339 in UTC. */
  is_time?: boolean;
}

type Values = Readonly<Record<string, string>>;

/** The filters by time of creation, for lists that have both. */
export const CREATED_FILTERS: readonly Filter[] = [
  { name: "created_after", label: "Created after", is_time: true },
  { name: "created_before", label: "Created before", is_time: true },
];

/** Returns a filter with these values to choose from. */
export function choiceOf(
  name: string,
  label: string,
  values: readonly string[],
  textOf: (value: string) => string = wordsOf,
): Filter {
  return { name, label, options: optionsOf(values, textOf) };
}

/** Returns the values of the filters in a query, and the failure of one that cannot be sent. */
export function readFilters(
  filters: readonly Filter[],
  query: Values,
): { values: Values; failure: Failure | null } {
  const values: Record<string, string> = Object.fromEntries(
    filters.flatMap(({ name, is_time }) => {
      const value = query[name];
      return value ? [[name, is_time ? parseTime(value) ?? value : value]] : [];
    }),
  );
  const wrong = filters.find(({ name, is_time }) =>
    is_time && values[name] && parseTime(values[name]) === null
  );
  if (!wrong) return { values, failure: null };
  return { values, failure: failureOf(new FieldError(wrong.name, NOT_A_TIME)) };
}

/** The fields. A change opens the list with the new filters, as a step of the history. */
export function Filters(props: {
  /** Accessible name of the form. */
  label: string;
  steps: readonly string[];
  filters: readonly Filter[];
  values: Values;
  failure: Failure | null;
  /** Whether the user can save them. */
  can_save?: boolean;
}) {
  const { label, steps, filters, values, failure, can_save = false } = props;
  const count = Object.keys(values).length;
  const name = failure ? "" : filters.flatMap((filter) => nameOf(filter, values)).join(", ");
  const set = ({ name, is_time }: Filter) => (text: string) => {
    const value = text.trim();
    go(steps, { ...values, [name]: is_time ? parseTime(value) ?? value : value });
  };
  return (
    <>
      <form
        class="filters"
        role="search"
        aria-label={label}
        onSubmit={(event) => event.preventDefault()}
      >
        {filters.map((filter) => (
          <FilterField
            key={filter.name}
            filter={filter}
            value={values[filter.name] ?? ""}
            set={set(filter)}
            failure={concerns(failure, [filter.name]) ? failure : null}
          />
        ))}
        {count > 0 && (
          <button
            type="button"
            class="plain"
            aria-label={count === 1 ? "Clear filter" : `Clear ${count} filters`}
            onClick={() => go(steps)}
          >
            Clear
          </button>
        )}
      </form>
      {can_save && <SavedFilters list={href(steps)} link={href(steps, values)} name={name} />}
    </>
  );
}

function nameOf({ name, label, options, is_time }: Filter, values: Values): string[] {
  const value = values[name];
  if (value === undefined) return [];
  if (is_time) return [`${label.toLowerCase()} ${shownTime(value)}`];
  return [options?.find(([option]) => option === value)?.[1] ?? value];
}

/** Returns a time as a field shows it: most filters are whole minutes, without seconds. */
function shownTime(value: string): string {
  const instant = parseTime(value);
  return instant === null ? value : formatTime(instant).replace(/:00$/, "");
}

/** Shows its draft while the user types, because the list is rendered again with each read. */
function FilterField(props: {
  filter: Filter;
  value: string;
  set: (text: string) => void;
  failure: Failure | null;
}) {
  const { filter, value, failure } = props;
  const { name, label, options, none = "Any", placeholder = "", is_time } = filter;
  const [draft, setDraft] = useState<string | null>(null);
  const control = {
    value: draft ?? (is_time ? shownTime(value) : value),
    onInput: (event: TargetedEvent<HTMLInputElement | HTMLSelectElement>) =>
      setDraft(event.currentTarget.value),
    onChange: (event: TargetedEvent<HTMLInputElement | HTMLSelectElement>) => {
      setDraft(null);
      props.set(event.currentTarget.value);
    },
    // A text that was typed and taken back changes nothing.
    onBlur: () => setDraft(null),
    ...(failure && { "aria-invalid": "true" as const, "aria-describedby": `${name}-error` }),
  };
  return (
    <div class={`filter filter-${name}`}>
      <label {...(is_time && { title: `In the time zone of the list: ${TIME_ZONE}` })}>
        <span>{label}</span>
        {options
          ? (
            <select {...control}>
              <option value="">{none}</option>
              {options.map(([option, text]) => <option key={option} value={option}>{text}</option>)}
            </select>
          )
          : (
            <input
              {...control}
              type="text"
              autoComplete="off"
              spellcheck={false}
              placeholder={is_time ? EXAMPLE_TIME : placeholder}
            />
          )}
      </label>
      {failure && <FieldFault id={`${name}-error`} failure={failure} />}
    </div>
  );
}
