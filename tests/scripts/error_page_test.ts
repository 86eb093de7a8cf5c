/** docs/errors.md has a heading for the `doc_url` of every code. */

import assert from "node:assert/strict";
import { docUrl } from "../../shared/core/errors.ts";
import { ERROR_CODES } from "../../shared/schema/error.ts";
import { renderErrorPage } from "../../scripts/documents/error_page.ts";

const ROOT = new URL("../../", import.meta.url);

for (const code of ERROR_CODES) {
  Deno.test(`docUrl("${code}") leads to a heading in the repository`, async () => {
    const [page, anchor] = docUrl(code).split("#");
    const text = await Deno.readTextFile(new URL(page!, ROOT));
    assert.ok(anchorsOf(text).includes(anchor!), `no heading for #${anchor}`);
  });
}

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
