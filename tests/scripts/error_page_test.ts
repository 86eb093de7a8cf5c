/** docs/errors.md, and the messages whose `doc_url` leads to it. */

import assert from "node:assert/strict";
import { renderErrorPage } from "../../tools/generate/error_page.ts";
import { projectFiles, readProjectFile } from "../support/documents/project_files.ts";

const PROJECT_FILE =
  /\b(?:docs|shared|supabase|client|package|console|scripts|examples|tests)\/[\w/]+\.[a-z]+/;
/** Modules and functions whose texts callers and users get. */
const SENT = /^(?:shared|client|package|console|supabase\/functions|supabase\/schemas)\//;
/** Lines of comments and imports. */
const NOT_SENT = /^\s*(?:\*|\/\/|\/\*|--|\{\/\*)|\bfrom "|\bimport[ (]"/;

Deno.test("docs/errors.md links only to its own headings", () => {
  const page = renderErrorPage();
  const links = [...page.matchAll(/\]\(#([^)]+)\)/g)].map(([, anchor]) => anchor!);
  assert.ok(links.length > 0);
  assert.deepEqual(links.filter((anchor) => !anchorsOf(page).includes(anchor)), []);
});

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

/** The anchors that Git hosts derive from headings. */
function anchorsOf(markdown: string): string[] {
  return [...markdown.matchAll(/^#+ (.+)$/gm)].map(([, heading]) =>
    heading!.toLowerCase().replace(/[^\w\- ]/g, "").replaceAll(" ", "-")
  );
}
