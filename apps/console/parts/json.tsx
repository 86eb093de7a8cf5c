/** Formatted JSON, and the differences of two JSON values, member by member. */

/** Shows a value as JSON with line breaks. See `jsonText` for texts. */
export function Json(props: { value: unknown; label: string }) {
  return (
    <pre class="json" tabIndex={0} role="region" aria-label={props.label}>
      <code>{jsonText(props.value)}</code>
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

/** A member that two values do not have in common. An absent value is undefined. */
export interface JsonChange {
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
