/** Writes the names that the constraints of a migration know, from the lists of the API. */

import { wrapped } from "./wrapped.ts";

/** Columns of a line of SQL. */
const LINE_WIDTH = 100;
const INDENT = "    ";

/**
 * Returns the migration with the names in its constraints. Each constraint has the form
 * `check (column in ('name', …))`.
 *
 * @param lists by the name of the constraint
 * @throws {Error} if a constraint is missing or has another form
 */
export function replaceKnownNames(
  migration: string,
  lists: Readonly<Record<string, readonly string[]>>,
): string {
  return Object.entries(lists).reduce((sql, [constraint, names]) => {
    const form = new RegExp(`(constraint ${constraint} check )\\(\\s*(\\w+) in \\([^)]*\\)\\s*\\)`);
    if (!form.test(sql)) throw new Error(`the constraint ${constraint} is missing`);
    const last = names.length - 1;
    const words = names.map((name, i) => `'${name}'${i < last ? "," : ""}`);
    const lines = wrapped(words, LINE_WIDTH - INDENT.length).map((line) => INDENT + line);
    return sql.replace(form, `$1($2 in (\n${lines.join("\n")}\n  ))`);
  }, migration);
}
