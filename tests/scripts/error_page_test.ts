/** docs/errors.md, and the messages whose `doc_url` leads to it. */

import assert from "node:assert/strict";
import { renderErrorPage } from "../../scripts/documents/error_page.ts";

const ROOT = new URL("../../", import.meta.url);

Deno.test("docs/errors.md links only to its own headings", () => {
  const page = renderErrorPage();
  const links = [...page.matchAll(/\]\(#([^)]+)\)/g)].map(([, anchor]) => anchor!);
  assert.ok(links.length > 0);
  assert.deepEqual(links.filter((anchor) => !anchorsOf(page).includes(anchor)), []);
});

Deno.test("no message names a file of the project, which a caller does not have", async () => {
  const messages = await Deno.readTextFile(new URL("tests/http/messages.md", ROOT));
  assert.equal(messages.match(/\b(docs|shared|supabase|client)\/[\w/]+\.\w+/), null);
});

/** The anchors that Git hosts derive from headings. */
function anchorsOf(markdown: string): string[] {
  return [...markdown.matchAll(/^#+ (.+)$/gm)].map(([, heading]) =>
    heading!.toLowerCase().replace(/[^\w\- ]/g, "").replaceAll(" ", "-")
  );
}
