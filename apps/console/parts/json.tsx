/** Formatted JSON. */

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
