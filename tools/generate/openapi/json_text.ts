/**
 * Writes the document as JSON for readers and for `git diff`: an object or a list stands on one
 * line if it fits. The value of an example and an object of references always do, and an object
 * with one member adds no level. Other JSON of this content has twice the bytes.
 */

/** Longest line of an object or list that stands on one line. */
const MAX_COLUMNS = 200;
/** Name of the member that holds the value of an example. */
const EXAMPLE_VALUE = "value";

/** Returns the text of a JSON value, which ends without a line break. */
export function jsonText(value: unknown): string {
  return textOf(value, "", 0, "");
}

/** `before` is the number of columns that precede the value on its line. */
function textOf(value: unknown, indent: string, before: number, name: string): string {
  const line = JSON.stringify(value);
  const is_short = before + line.length <= MAX_COLUMNS;
  if (typeof value !== "object" || value === null || is_short || name === EXAMPLE_VALUE) {
    return line;
  }
  if (isReferences(value)) return line;
  const deeper = `${indent} `;
  if (Array.isArray(value)) {
    const items = value.map((item) => `${deeper}${textOf(item, deeper, deeper.length + 1, "")}`);
    return `[\n${items.join(",\n")}\n${indent}]`;
  }
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  if (members.length === 1) {
    const [key, member] = members[0]!;
    const start = `{${JSON.stringify(key)}: `;
    return `${start}${textOf(member, indent, before + start.length, key)}}`;
  }
  const lines = members.map(([key, member]) => {
    const start = `${deeper}${JSON.stringify(key)}: `;
    return start + textOf(member, deeper, start.length + 1, key);
  });
  return `{\n${lines.join(",\n")}\n${indent}}`;
}

/** Whether each member of an object is a reference, as in the headers of a response. */
function isReferences(value: object): boolean {
  return !Array.isArray(value) &&
    Object.values(value).every((member) =>
      typeof member === "object" && member !== null && "$ref" in member
    );
}
