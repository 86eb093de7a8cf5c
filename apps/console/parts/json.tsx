/** Formatted JSON with links, and the differences of two JSON values, member by member. */

import type { ComponentChildren } from "preact";
import { ListTable } from "./list_table.tsx";
import { Linked } from "./mention.tsx";
import { Breaking } from "./text.tsx";

/** Shows a value as JSON with line breaks. See `jsonText` for texts. */
export function Json(props: { value: unknown; label: string }) {
  return (
    <pre class="json" tabIndex={0} role="region" aria-label={props.label}>
      <code>
        <Linked text={jsonText(props.value)} />
      </code>
    </pre>
  );
}

/** Returns a value as formatted JSON. A text that is JSON is formatted too, any other is kept. */
export function jsonText(value: unknown): string {
  if (typeof value !== "string") return JSON.stringify(value, null, 2);
  try {
    return JSON.stringify(JSON.parse(value), null, 2);
  } catch {
    return value;
  }
}

/** A table of differences. `before` and `after` are the headings of the two values. */
export function ChangeTable(props: {
  label: string;
  before: ComponentChildren;
  after: ComponentChildren;
  changes: readonly JsonChange[];
  /** The text without differences. */
  none: string;
}) {
  const { label, changes, none } = props;
  if (changes.length === 0) return <p class="quiet">{none}</p>;
  return (
    <ListTable
      label={label}
      items={changes.map((change) => ({ ...change, id: change.path }))}
      columns={[
        { heading: "Member", is_name: true, cell: ({ path }) => <Breaking text={path} /> },
        { heading: props.before, class: "whole", cell: ({ before }) => <Value of={before} /> },
        { heading: props.after, class: "whole", cell: ({ after }) => <Value of={after} /> },
      ]}
    />
  );
}

function Value({ of }: { of: unknown }) {
  return of === undefined
    ? <span class="quiet">absent</span>
    : <code>{typeof of === "string" ? of : JSON.stringify(of)}</code>;
}

/** A member that two values do not have in common. An absent value is undefined. */
interface JsonChange {
  /** The names from the outside in: `method.card.last4`. */
  path: string;
  before: unknown;
  after: unknown;
}

/** Returns the members that differ, in the order of `after`. Lists are compared as a whole. */
export function jsonChanges(before: unknown, after: unknown, path = ""): JsonChange[] {
  if (!isObject(before) || !isObject(after)) {
    return JSON.stringify(before) === JSON.stringify(after) ? [] : [{ path, before, after }];
  }
  const names = new Set([...Object.keys(after), ...Object.keys(before)]);
  return [...names].flatMap((name) =>
    jsonChanges(before[name], after[name], path === "" ? name : `${path}.${name}`)
  );
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
