/**
 * The lists of CONTRIBUTING.md are true: every listed file contains the list's example. For facts
 * in many files the list is also complete: no other hand-written file contains the example.
 */

import assert from "node:assert/strict";
import { codeTexts, tableRows } from "../support/documents/readme_document.ts";
import { projectFiles, readProjectFile } from "../support/documents/project_files.ts";

/** Hand-written code. Tests follow the code that they test and do not count. */
const CODE = /^(?:bench|client|console|scripts|shared|supabase|torture)\/.*\.(?:tsx?|sql)$/;
/** The first line of a generated migration. */
const GENERATED = '-- Written by "deno task schema --release ';
/** The form of an example in code, where the bare word also has other uses. */
const FORMS: Record<string, RegExp> = {
  processing: /["'.]processing["',}]|\bprocessing:/,
  "0259": /0259"/,
};
/** Lists that must name every file. */
const COMPLETE = new Set(["A payment status", "An event", "An error code", "A test card"]);

const page = await readProjectFile("CONTRIBUTING.md");
const [, added = ""] = page.split("## Add something\n");
const code = (await projectFiles([".ts", ".tsx", ".sql"])).filter((path) => CODE.test(path));

for (const section of added.split(/^### /m).slice(1)) {
  const heading = section.split("\n", 1)[0]!;
  const [, example] = /^Example: `([^`]+)`/m.exec(section) ?? [];
  const form = FORMS[example!] ?? new RegExp(`\\b${example!.replaceAll(".", "\\.")}`);
  const listed = tableRows(section, "File").map(([cell]) => codeTexts(cell!)[0]!);

  Deno.test(`CONTRIBUTING.md, ${heading}: every listed file contains ${example}`, async () => {
    const without: string[] = [];
    for (const path of listed) {
      const shown = path.endsWith(".md") ? new RegExp(example!) : form;
      if (!shown.test(await readProjectFile(path))) without.push(path);
    }
    assert.deepEqual(without, []);
  });

  if (!COMPLETE.has(heading)) continue;
  Deno.test(`CONTRIBUTING.md, ${heading}: no other file contains ${example}`, async () => {
    const others: string[] = [];
    for (const path of code) {
      if (listed.includes(path)) continue;
      const text = await readProjectFile(path);
      if (!text.startsWith(GENERATED) && form.test(text)) others.push(path);
    }
    assert.deepEqual(others, []);
  });
}
