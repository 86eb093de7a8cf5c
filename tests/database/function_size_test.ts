/** The form of `supabase/schemas/*.sql`: 100 columns, and functions of 80 lines. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { SCHEMAS_DIR } from "../../tools/schema/schema_files.ts";

const MAX_FUNCTION_LINES = 80;
const MAX_COLUMNS = 100;

/** Its group is the name. */
const FUNCTION = /^create or replace function pay(?:_internal)?\.(\w+)\([^]*?as \$\$[^]*?\$\$;$/gm;

/** The violations of a file, one line for each. */
function violationsOf(file: string, text: string): string[] {
  const violations = text.split("\n").flatMap((line, i) =>
    [...line].length > MAX_COLUMNS ? [`${file}:${i + 1} has more than ${MAX_COLUMNS} columns`] : []
  );
  const functions = [...text.matchAll(FUNCTION)];
  const begun = [...text.matchAll(/^create or replace function /gm)].length;
  if (functions.length !== begun) {
    violations.push(`${file} begins ${begun} functions, of which ${functions.length} can be read`);
  }
  for (const [definition, name] of functions) {
    const count = definition.split("\n").length;
    if (count > MAX_FUNCTION_LINES) violations.push(`${file}: ${name}() has ${count} lines`);
  }
  return violations;
}

Deno.test("supabase/schemas keeps to the limits of size", async () => {
  const violations: string[] = [];
  for await (const { name } of Deno.readDir(SCHEMAS_DIR)) {
    if (!name.endsWith(".sql")) continue;
    violations.push(...violationsOf(name, await Deno.readTextFile(join(SCHEMAS_DIR, name))));
  }
  assert.deepEqual(violations.sort(), []);
});
