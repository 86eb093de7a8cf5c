/**
 * Splits an SQL file into statements, so that an error can name a line and each statement can be
 * recorded alone. It skips semicolons inside strings, quoted names, dollar quotes, comments (also
 * nested ones) and the bodies of `begin atomic` functions.
 */

/** A statement of a file, without the semicolon. */
export interface SqlStatement {
  text: string;
  /** Line of its first character that is not white space, from 1. */
  line: number;
}

/** The parts that are skipped as a whole, in the order in which they are tried. */
const OPAQUE = new RegExp(
  [
    /--[^\n]*/, // comment to the end of the line
    /[eE]'(?:[^'\\]|''|\\[^])*'/, // string with backslash escapes
    /'(?:[^']|'')*'/,
    /"(?:[^"]|"")*"/,
    /(\$(?:[A-Za-z_]\w*)?\$)[^]*?\1/, // dollar quote
    /\bbegin\s+atomic\b[^]*?\bend\s*(?=;)/, // ends with an "end" right before a semicolon
    /[A-Za-z_][\w$]*/, // a word, so that e'' and $1 inside one are not mistaken
  ].map((part) => part.source).join("|"),
  "iy",
);

/** Returns the statements in order. A comment belongs to the statement that follows it. */
export function splitStatements(sql: string): SqlStatement[] {
  const statements: SqlStatement[] = [];
  let start = 0;
  let line = 1;
  let has_content = false;
  const take = (end: number) => {
    const raw = sql.slice(start, end);
    const text = raw.trimStart();
    const lines_before = lineAt(raw, raw.length - text.length) - 1;
    if (has_content) statements.push({ text: text.trimEnd(), line: line + lines_before });
    line += lineAt(raw, raw.length) - 1;
    start = end + 1;
    has_content = false;
  };
  for (let at = 0; at < sql.length;) {
    const length = opaqueLength(sql, at);
    if (length > 0) {
      has_content ||= !sql.startsWith("--", at) && !sql.startsWith("/*", at);
      at += length;
    } else {
      if (sql[at] === ";") take(at);
      else has_content ||= sql[at]!.trim() !== "";
      at++;
    }
  }
  take(sql.length);
  return statements;
}

/** Returns the line of the character at `index`, from 1. */
export function lineAt(text: string, index: number): number {
  let line = 1;
  for (let at = text.indexOf("\n"); at !== -1 && at < index; at = text.indexOf("\n", at + 1)) {
    line++;
  }
  return line;
}

/** Returns the length of the string, name, comment or word that begins at `at`, or 0 if none. */
function opaqueLength(sql: string, at: number): number {
  if (sql.startsWith("/*", at)) return blockCommentLength(sql, at);
  OPAQUE.lastIndex = at;
  return OPAQUE.exec(sql)?.[0].length ?? 0;
}

function blockCommentLength(sql: string, start: number): number {
  let depth = 0;
  for (let at = start; at < sql.length; at++) {
    const pair = sql.slice(at, at + 2);
    if (pair === "/*") depth++, at++;
    else if (pair === "*/" && (at++, --depth === 0)) return at + 1 - start;
  }
  return sql.length - start;
}
