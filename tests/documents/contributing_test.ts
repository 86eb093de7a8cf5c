/**
 * The lists of CONTRIBUTING.md are true: every file that a list names holds the list's example. For
 * facts that stand in many files the list is also complete: no other hand-written file holds it.
 */

import assert from "node:assert/strict";
import { codeTexts, tableRows } from "../readme_document.ts";
import { projectFiles, readProjectFile } from "./project_files.ts";

/** Code that people write. Tests follow the code that they test, and are not counted. */
const CODE = /^(?:bench|client|console|scripts|shared|supabase|torture)\/.*\.(?:tsx?|sql)$/;
/** The mark of a file that a program has written, in its first comment. */
const GENERATED = /^(?:--|\/\*\*\n(?: \*.*\n)*? \*) Written by "deno task /;
/** The folder of the migrations. */
const MIGRATIONS = "supabase/migrations/";
/** How an example stands in code, where the bare word also stands in prose or for other things. */
const FORMS: Record<string, RegExp> = {
  processing: /["'.]processing["',}]|\bprocessing:/,
  "0259": /0259"/,
};
/** Lists that name every file, with the most files that each may have. */
const COMPLETE = new Map([
  ["A payment status", 8],
  ["An event", 3],
  ["An error code", 5],
  ["A test card", 3],
]);

const page = await readProjectFile("CONTRIBUTING.md");
const [, added = ""] = page.split("## Add something\n");
const code = (await projectFiles([".ts", ".tsx", ".sql"])).filter((path) => CODE.test(path));

for (const section of added.split(/^### /m).slice(1)) {
  const heading = section.split("\n", 1)[0]!;
  const [, example] = /^Example: `([^`]+)`/m.exec(section) ?? [];
  const form = FORMS[example!] ?? new RegExp(`\\b${example!.replaceAll(".", "\\.")}`);
  const listed = tableRows(section, "File").map(([cell]) => codeTexts(cell!)[0]!);

  Deno.test(`CONTRIBUTING.md, ${heading}: every file of the list holds ${example}`, async () => {
    const without: string[] = [];
    for (const path of listed) {
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
  Deno.test(`CONTRIBUTING.md, ${heading}: no other file holds ${example}`, async () => {
    const others: string[] = [];
    // A later migration that replaces a constraint names all its values again.
    const is_migrated = listed.some((path) => path.startsWith(MIGRATIONS));
    for (const path of code) {
      if (listed.includes(path) || (is_migrated && path.startsWith(MIGRATIONS))) continue;
      const text = await readProjectFile(path);
      if (!GENERATED.test(text) && form.test(text)) others.push(path);
    }
    assert.deepEqual(others, []);
  });
}
