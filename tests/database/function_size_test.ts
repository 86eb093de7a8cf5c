/**
 * The form of `supabase/schemas/*.sql`: the size of files and functions, a pinned search_path, and
 * names that distinguish parameters and variables from columns.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { SCHEMAS_DIR } from "../../scripts/schema/schema_files.ts";

const MAX_FILE_LINES = 450;
const MAX_FUNCTION_LINES = 80;
const MAX_COLUMNS = 100;

const BEGINNING = /^create or replace function /gm;
/** Groups: the name, the parameters, the text between them and the body, and the body. */
const FUNCTION =
  /^create or replace function pay(?:_internal)?\.(\w+)\(([^]*?)\)\n(returns [^]*?|language [^]*?)\$\$([^]*?)\$\$;$/gm;
const PINNED_PATH = "set search_path = pg_catalog, pg_temp";
/** Parameters that people write by hand, in the words of `deno task keys`. */
const CALLED_BY_HAND = new Map([["expose", ["account", "mode"]]]);
/** A comma between two parameters, but not in `numeric(9, 2)`. */
const BETWEEN_PARAMETERS = /,(?![^(]*\))/;

/** The violations of a file, one line for each. */
function violationsOf(file: string, text: string): string[] {
  const violations: string[] = [];
  const lines = text.replace(/\n$/, "").split("\n");
  if (lines.length > MAX_FILE_LINES) violations.push(`${file} has ${lines.length} lines`);
  for (const [i, line] of lines.entries()) {
    const columns = [...line].length;
    if (columns > MAX_COLUMNS) violations.push(`${file}:${i + 1} has ${columns} columns`);
  }
  const functions = [...text.matchAll(FUNCTION)];
  const begun = [...text.matchAll(BEGINNING)].length;
  if (functions.length !== begun) {
    violations.push(`${file} begins ${begun} functions, of which ${functions.length} can be read`);
  }
  for (const [definition, name, parameters, options, body] of functions) {
    const count = definition.split("\n").length;
    if (count > MAX_FUNCTION_LINES) violations.push(`${file}: ${name}() has ${count} lines`);
    if (!options!.includes(PINNED_PATH)) {
      violations.push(`${file}: ${name}() has no pinned search_path`);
    }
    for (const parameter of parametersIn(parameters!)) {
      if (parameter.startsWith("p_") || CALLED_BY_HAND.get(name!)?.includes(parameter)) continue;
      violations.push(`${file}: ${name}() has the parameter ${parameter}`);
    }
    for (const variable of variablesIn(body!)) {
      if (variable.startsWith("v_")) continue;
      violations.push(`${file}: ${name}() has the variable ${variable}`);
    }
  }
  return violations;
}

/** The names of the parameters that a caller passes. */
function parametersIn(parameters: string): string[] {
  return parameters.split(BETWEEN_PARAMETERS).map((text) => text.trim())
    .filter((text) => text !== "" && !text.startsWith("out "))
    .map((text) => text.replace(/^(?:in|inout|variadic) /, "").split(/\s/)[0]!);
}

/** The names of declared variables and of loop variables. */
function variablesIn(body: string): string[] {
  const [, declarations = ""] = /^declare\n([^]*?)^begin$/m.exec(body) ?? [];
  return [
    ...declarations.matchAll(/^ {2}(\w+) /gm),
    ...body.matchAll(/^\s*(?:for|foreach) (\w+) in\b/gm),
  ].map(([, name]) => name!);
}

Deno.test("supabase/schemas keeps to the limits of size, search_path and names", async () => {
  const violations: string[] = [];
  let files = 0;
  for await (const { name } of Deno.readDir(SCHEMAS_DIR)) {
    if (!name.endsWith(".sql")) continue;
    files++;
    violations.push(...violationsOf(name, await Deno.readTextFile(join(SCHEMAS_DIR, name))));
  }
  assert.ok(files > 0);
  assert.deepEqual(violations.sort(), []);
});

const WELL = `-- Adds.
create or replace function pay.add(p_a integer, p_b numeric(9, 2), out total numeric)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_sum constant numeric := p_a + p_b;
begin
  for v_n in 1..2 loop
    total := v_sum;
  end loop;
end
$$;
`;
const CASES: [name: string, find: string, replace: string, violation: RegExp][] = [
  ["a long line", "-- Adds.", `-- ${"ä".repeat(98)}`, /^a\.sql:1 has 101 columns$/],
  ["a long file", "-- Adds.", "\n".repeat(450), /^a\.sql has 463 lines$/],
  ["a long function", "begin\n", "begin\n".padEnd(77, "\n"), /^a\.sql: add\(\) has 83 lines$/],
  ["a pinned path that is missing", "pg_catalog, pg_temp", "public", /has no pinned search_path$/],
  ["a parameter", "p_b numeric", "b numeric", /^a\.sql: add\(\) has the parameter b$/],
  ["a variable", "v_sum constant", "c_sum constant", /^a\.sql: add\(\) has the variable c_sum$/],
  ["the variable of a loop", "for v_n", "for n", /^a\.sql: add\(\) has the variable n$/],
  ["a function of another form", "as $$", "as $f$", /^a\.sql begins 1 functions, of which 0/],
];

Deno.test("violationsOf() finds nothing in a correct file", () => {
  assert.deepEqual(violationsOf("a.sql", WELL), []);
});

for (const [name, find, replace, violation] of CASES) {
  Deno.test(`violationsOf() finds one violation: ${name}`, () => {
    const text = WELL.replace(find, () => replace);
    assert.notEqual(text, WELL);
    const violations = violationsOf("a.sql", text);
    assert.equal(violations.length, 1, violations.join("\n"));
    assert.match(violations[0]!, violation);
  });
}
