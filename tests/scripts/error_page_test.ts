/** docs/errors.md and the messages that name its headings. */

import assert from "node:assert/strict";
import { renderErrorPage } from "../../scripts/documents/error_page.ts";

const ROOT = new URL("../../", import.meta.url);

Deno.test("docs/errors.md links only to its own headings", () => {
  const page = renderErrorPage();
  const links = [...page.matchAll(/\]\(#([^)]+)\)/g)].map(([, anchor]) => anchor!);
  assert.ok(links.length > 0);
  assert.deepEqual(links.filter((anchor) => !anchorsOf(page).includes(anchor)), []);
});

Deno.test("messages with the address of docs/errors.md lead to a heading of it", async () => {
  const messages = await Deno.readTextFile(new URL("tests/http/messages.md", ROOT));
  const anchors = new Set(
    [...messages.matchAll(/docs\/errors\.md#([\w-]+)/g)].map(([, anchor]) => anchor!),
  );
  assert.deepEqual([...anchors].sort(), ["event-types", "test-values"]);
  const known = anchorsOf(renderErrorPage());
  assert.deepEqual([...anchors].filter((anchor) => !known.includes(anchor)), []);
});

/** The anchors that Git hosts derive from headings. */
function anchorsOf(markdown: string): string[] {
  return [...markdown.matchAll(/^#+ (.+)$/gm)].map(([, heading]) =>
    heading!.toLowerCase().replace(/[^\w\- ]/g, "").replaceAll(" ", "-")
  );
}
