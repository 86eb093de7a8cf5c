/** JSON as people read it. */

/** A value, or a text that already is JSON, with line breaks; anything else as it is. */
export function Json(props: { value: unknown; label: string }) {
  return (
    <pre class="json" tabIndex={0} role="region" aria-label={props.label}>
      <code>{jsonText(props.value)}</code>
    </pre>
  );
}

/** The text of a value; a text of JSON is set anew, any other stays. */
export function jsonText(value: unknown): string {
  if (typeof value !== "string") return JSON.stringify(value, null, 2);
  try {
    return JSON.stringify(JSON.parse(value), null, 2);
  } catch {
    return value;
  }
}
