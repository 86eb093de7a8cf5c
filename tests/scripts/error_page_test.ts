/** Messages that callers get. */

import assert from "node:assert/strict";
import { projectFiles, readProjectFile } from "../support/documents/project_files.ts";

const PROJECT_FILE =
  /\b(?:apps|docs|examples|packages|shared|supabase|tests|tools)\/[\w/]+\.[a-z]+/;
/** Modules and functions whose texts callers and users get. */
const SENT = /^(?:apps\/console|packages|shared|supabase\/functions|supabase\/schemas)\//;
/** Lines of comments and imports. */
const NOT_SENT = /^\s*(?:\*|\/\/|\/\*|--|\{\/\*)|\bfrom "|\bimport[ (]"/;

Deno.test("no message names a file of the project, which a caller does not have", async () => {
  const messages = await readProjectFile("tests/http/messages.md");
  assert.deepEqual(messages.match(PROJECT_FILE), null);
  const found = [];
  for (
    const path of (await projectFiles([".ts", ".tsx", ".sql"])).filter((one) => SENT.test(one))
  ) {
    const lines = (await readProjectFile(path)).split("\n").filter((line) => !NOT_SENT.test(line));
    found.push(
      ...lines.filter((line) => PROJECT_FILE.test(line)).map((line) => `${path}: ${line}`),
    );
  }
  assert.deepEqual(found, []);
});
