/**
 * Rows as the texts of a composite type in an array, which PostgreSQL reads in a third of the time
 * of rows in JSON.
 */

type Value = string | number | boolean | readonly (string | number)[] | null | undefined;

/** JSON texts, and a list of parts of one. */
const TEXTS = new Set(["body", "object", "before"]);
/** A value that needs no quotation marks. */
const PLAIN = /^[\w.:+/ -]+$/;
/** Stands for an empty text in a search: unlike null, it needs quotation marks. */
const EMPTY = '"';

/**
 * Returns the text of a row in an array.
 * @param columns those of the type after n, in its order
 * @param addLine returns the number of the line that has a text; absent: the row has its texts
 */
export function rowText(
  columns: readonly string[],
  row: object,
  n: number,
  addLine?: (text: string) => number,
): string {
  const fields: (string | number | null)[] = [n];
  // One search in all texts costs less than one in each.
  let texts = "";
  for (const name of columns) {
    const value = (row as Record<string, Value>)[name];
    if (value === undefined || value === null) fields.push(null);
    else if (typeof value === "number") fields.push(value);
    else if (addLine && TEXTS.has(name)) {
      fields.push(addLine(Array.isArray(value) ? value.join("\t") : String(value)));
    } else {
      const written = Array.isArray(value) ? `{${value.join()}}` : String(value);
      texts += written || EMPTY;
      fields.push(written);
    }
  }
  // `join` writes nothing for null, as PostgreSQL does.
  if (texts === "" || PLAIN.test(texts)) return `"(${fields.join()})"`;
  const needsNone = (field: string | number | null) =>
    typeof field !== "string" || PLAIN.test(field);
  return quoted(`(${fields.map((field) => needsNone(field) ? field : quoted(`${field}`)).join()})`);
}

function quoted(text: string): string {
  return `"${text.replace(/["\\]/g, "\\$&")}"`;
}
