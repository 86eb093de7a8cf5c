/** splitStatements(): the statements of a file, with the line of each. */

import assert from "node:assert/strict";
import { splitStatements } from "../../apps/server/migrations/sql_statements.ts";

/** [case, SQL, text and line of each statement] */
const CASES: readonly [string, string, ...[string, number][]][] = [
  ["an empty file", ""],
  ["blanks and comments alone", "-- nothing;\n/* here; */\n"],
  ["the last semicolon may be missing", "select 1;\nselect 2", ["select 1", 1], ["select 2", 2]],
  ["empty statements are dropped", ";;\nselect 1;;", ["select 1", 2]],
  ["blanks before a statement", "\n\n  select 1;", ["select 1", 3]],
  ["a comment belongs to the next statement", "-- a;b\nselect 1;", ["-- a;b\nselect 1", 1]],
  ["a string", "select 'a;''b;' ;select 2", ["select 'a;''b;'", 1], ["select 2", 1]],
  ["a string with escapes", "select e'\\';' ;select 2", ["select e'\\';'", 1], ["select 2", 1]],
  ["no escapes in a plain string", "select '\\';select 2", ["select '\\'", 1], ["select 2", 1]],
  ["a quoted name", 'select 1 as "a;""b"; ', ['select 1 as "a;""b"', 1]],
  ["a dollar quote", "do $$ a; b $$;\nselect 1", ["do $$ a; b $$", 1], ["select 1", 2]],
  ["dollar quotes within another", "do $x$ $$;$$; $x$; ", ["do $x$ $$;$$; $x$", 1]],
  ["a parameter is no dollar quote", "select $1;select $1", ["select $1", 1], ["select $1", 1]],
  ["nested comments", "/* a /* b; */ c; */ select 1;", ["/* a /* b; */ c; */ select 1", 1]],
  ["an unfinished comment", "select 1; /* a;", ["select 1", 1]],
  [
    "the body of a standard function",
    "create function f() begin atomic select 1; select 2; end;\nselect 3",
    ["create function f() begin atomic select 1; select 2; end", 1],
    ["select 3", 2],
  ],
];

for (const [criterion, sql, ...expected] of CASES) {
  Deno.test(`splitStatements() ${criterion}`, () => {
    const found = splitStatements(sql).map(({ text, line }) => [text, line]);
    assert.deepEqual(found, expected);
  });
}
