/**
 * No regular expression of the service, the client or the scripts takes more than linear time.
 *
 * A text that repeats one character can make a backtracking engine take quadratic or exponential
 * time. scslre finds such expressions by analysis, so the test covers every expression of the
 * project. core/linear_time_test.ts measures loops and libraries.
 */

import assert from "node:assert/strict";
import { analyse } from "scslre";
import { LIKE_LETTERS } from "../../shared/core/card_number.ts";
import { idPattern } from "../../shared/core/ids.ts";
import { EMAIL } from "../../shared/schema/values.ts";
import { projectFiles, readProjectFile } from "../support/documents/project_files.ts";

/** The console is not included: it reads responses of the service, in the browser of one person. */
const FOLDERS = ["apps/operator/", "apps/server/", "packages/client/", "shared/", "supabase/"]
  .concat("tools/testing/");
const PATHS = (await projectFiles([".ts", ".tsx"], FOLDERS))
  .filter((path) => !path.endsWith(".d.ts"));

/** Expressions that a file builds at run time, which expressions() cannot find. */
const BUILT: Record<string, readonly RegExp[]> = {
  "shared/core/card_number.ts": [LIKE_LETTERS],
  "shared/core/ids.ts": [idPattern("pay_")],
  // Of a route with a parameter.
  "shared/sandbox/request_log_entry.ts": [/^\/payments\/[a-z]{2,4}_[0-9a-z]{26}\/cancel$/],
  "shared/schema/values.ts": [EMAIL],
  // This file joins literals, and reads only the project's own migrations.
  "apps/server/migrations/sql_statements.ts": [],
};

/** The text of an expression, and its file. */
interface Found {
  path: string;
  source: string;
  flags: string;
}

Deno.test("regular expressions take linear time", async () => {
  const found = await expressions();
  assert.ok(found.length > 80, `only ${found.length} expressions were found`);
  assert.deepEqual(found.flatMap(slowOnes), []);
});

Deno.test("regular expressions built at run time take linear time", async () => {
  const files: string[] = [];
  for (const path of PATHS) {
    if (/\bnew RegExp\(/.test(await readProjectFile(path))) files.push(path);
  }
  assert.deepEqual(files.sort(), Object.keys(BUILT).sort());
  const built = Object.entries(BUILT).flatMap(([path, expressions]) =>
    expressions.map(({ source, flags }) => ({ path, source, flags }))
  );
  assert.deepEqual(built.flatMap(slowOnes), []);
});

function slowOnes({ path, source, flags }: Found): string[] {
  return analyse({ source, flags }).reports.map(({ type, exponential }) =>
    `${path}: /${source}/${flags} is ${exponential ? "exponential" : "polynomial"} (${type})`
  );
}

/** Every regular expression literal, collected by the linter's parser. */
async function expressions(): Promise<Found[]> {
  const found: Found[] = [];
  for (const path of PATHS) {
    const collector: Deno.lint.Plugin = {
      name: "collector",
      rules: {
        regex: {
          create: () => ({
            Literal(node) {
              if (!("regex" in node) || !node.regex) return;
              found.push({ path, source: node.regex.pattern, flags: node.regex.flags });
            },
          }),
        },
      },
    };
    Deno.lint.runPlugin(collector, path, await readProjectFile(path));
  }
  return found;
}
