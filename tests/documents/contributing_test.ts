/**
 * The lists of CONTRIBUTING.md are true: every listed file contains the list's example. For a list
 * of many files the list is also complete: no other hand-written file contains the example.
 */

import assert from "node:assert/strict";
import { codeTexts, tableRows } from "../support/documents/readme_document.ts";
import { projectFiles, readProjectFile } from "../support/documents/project_files.ts";

/** Hand-written code. Tests follow the code that they test and do not count. */
const CODE = /^(?:bench|client|console|scripts|shared|supabase|chaos)\/.*\.(?:tsx?|sql)$/;
/**
 * Connectors read the words of their providers, and the live story those of responses: both can be
 * the same as ours. They count only for a list that names one of them.
 */
const CONNECTORS = /^(?:shared\/connectors\/|chaos\/(?:live|chain)_)/;
/** The mark of a generated file, in its first comment. */
const GENERATED = /^(?:--|\/\*\*\n(?: \*.*\n)*? \*) Written by "deno task /;
/** The folder of the migrations. */
const MIGRATIONS = "supabase/migrations/";
/** The form of an example in code, where the bare word also has other uses. */
const FORMS: Record<string, RegExp> = {
  processing: /["'.]processing["',}]|\bprocessing:/,
  swift: /["'.]swift["',)\]]|\bswift:/,
  "0259": /0259"/,
};
/** Lists that must name every file, with the most files that each may have. */
const COMPLETE = new Map([
  ["A payment status", 15],
  ["An event", 3],
  ["An error code", 5],
  ["A decline code of a provider", 2],
  ["A test card", 3],
  ["A rail", 15],
]);
/** Most files for a status that neither a create nor an address can give. */
const MOST_OF_A_STATUS = 9;

const page = await readProjectFile("CONTRIBUTING.md");
const [, added = ""] = page.split("## Add something\n");
const code = (await projectFiles([".ts", ".tsx", ".sql"])).filter((path) => CODE.test(path));

for (const section of added.split(/^### /m).slice(1)) {
  const heading = section.split("\n", 1)[0]!;
  const [, example] = /^Example: `([^`]+)`/m.exec(section) ?? [];
  const form = FORMS[example!] ?? new RegExp(`\\b${example!.replaceAll(".", "\\.")}`);
  const listed = pathsOf(section, "File");
  const tests = section.includes("\n| Test ") ? pathsOf(section, "Test") : [];

  Deno.test(`CONTRIBUTING.md, ${heading}: every listed file contains ${example}`, async () => {
    const without: string[] = [];
    for (const path of [...listed, ...tests]) {
      const shown = path.endsWith(".md") ? new RegExp(example!) : form;
      if (!shown.test(await readProjectFile(path))) without.push(path);
    }
    assert.deepEqual(without, []);
  });

  const most = COMPLETE.get(heading);
  if (most === undefined) continue;
  Deno.test(`CONTRIBUTING.md, ${heading}: the list has at most ${most} files`, () => {
    assert.ok(listed.length <= most, listed.join(", "));
  });
  Deno.test(`CONTRIBUTING.md, ${heading}: no other file contains ${example}`, async () => {
    const others: string[] = [];
    // A later migration that replaces a constraint names all its values again.
    const is_migrated = listed.some((path) => path.startsWith(MIGRATIONS));
    const has_connectors = listed.some((path) => CONNECTORS.test(path));
    for (const path of code) {
      if (!has_connectors && CONNECTORS.test(path)) continue;
      if (listed.includes(path) || (is_migrated && path.startsWith(MIGRATIONS))) continue;
      const text = await readProjectFile(path);
      if (!GENERATED.test(text) && form.test(text)) others.push(path);
    }
    assert.deepEqual(others, []);
  });
}

Deno.test(`CONTRIBUTING.md: a payment status needs at most ${MOST_OF_A_STATUS} files`, () => {
  const [, section = ""] = added.split("### A payment status\n");
  const [first = ""] = section.split("\n\nIf ");
  const paths = pathsOf(first, "File");
  assert.ok(paths.length > 0 && paths.length <= MOST_OF_A_STATUS, paths.join(", "));
});

Deno.test("CONTRIBUTING.md names the migration of functions that exists", async () => {
  const paths = await projectFiles([".sql"]);
  const names = [...page.matchAll(/schema --release (\w+)/g)].map(([, name]) => name!);
  const unknown = names.filter((name) =>
    !paths.some((path) => path.startsWith(MIGRATIONS) && path.endsWith(`_${name}.sql`))
  );
  assert.ok(names.length > 0);
  assert.deepEqual(unknown, []);
});

/** The paths in the first column of a table. */
function pathsOf(section: string, header: string): string[] {
  return tableRows(section, header).map(([cell]) => codeTexts(cell!)[0]!);
}
