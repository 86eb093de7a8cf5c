/** Writes the names that the constraints of a migration know, from the lists of the API. */

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
    return sql.replace(form, `$1($2 in (\n${wrapped(names)}\n  ))`);
  }, migration);
}

function wrapped(names: readonly string[]): string {
  const lines = [INDENT];
  for (const [i, name] of names.entries()) {
    const text = `'${name}'${i < names.length - 1 ? "," : ""}`;
    const line = `${lines.at(-1)}${lines.at(-1) === INDENT ? "" : " "}${text}`;
    if (line.length > LINE_WIDTH) lines.push(INDENT + text);
    else lines[lines.length - 1] = line;
  }
  return lines.join("\n");
}
