/**
 * The document of `pay.commit` and `pay.record`. Its first line is JSON. In it the rows of payments,
 * events and other tables are the text of an array of a composite type, and they name their texts by
 * the numbers of further lines: PostgreSQL reads both in a third of the time of rows in JSON. A JSON
 * text has no line break and no tab outside of its escapes.
 */

type Value = string | number | boolean | readonly string[] | null | undefined;

/** JSON texts, and a list of parts of one. */
const TEXTS = new Set(["body", "object", "before"]);
/** A value that needs no quotation marks in the text of a row. */
const PLAIN = /^[\w.:+-]+$/;

export class DocumentLines {
  readonly #lines = [""];

  /**
   * Returns the text of an array of rows; undefined without rows.
   * @param columns those of the type after n, in its order
   */
  rows(columns: readonly string[], rows: readonly object[] | undefined): string | undefined {
    const texts = rows?.map((row) => this.#row(["n", ...columns], row as Record<string, Value>));
    return texts && `{${texts.map(quoted).join()}}`;
  }

  /** Returns the whole document. */
  write(document: object): string {
    this.#lines[0] = JSON.stringify(document);
    return this.#lines.join("\n");
  }

  #row(columns: readonly string[], row: Readonly<Record<string, Value>>): string {
    const values = columns.map((name) => {
      const value = row[name] ?? null;
      if (value === null) return "";
      if (TEXTS.has(name)) return this.#add(Array.isArray(value) ? value.join("\t") : `${value}`);
      const text = String(value);
      return PLAIN.test(text) ? text : quoted(text);
    });
    return `(${values.join()})`;
  }

  /** Returns the number of the line that has a text. */
  #add(text: string): number {
    if (text.includes("\n")) throw new Error("A text of a change has a line break");
    return this.#lines.push(text);
  }
}

function quoted(text: string): string {
  return `"${text.replace(/["\\]/g, "\\$&")}"`;
}
