/** Reads lists to their end. */

import assert from "node:assert/strict";
import type { CallOptions, TestService } from "../service/service.ts";

/** More than any list of a test has. */
const MOST_PAGES = 1_000;

/** Returns the pages of a list. The path has a query. */
export async function readPages(
  { call }: Pick<TestService, "call">,
  path: string,
  options: CallOptions = {},
) {
  // deno-lint-ignore no-explicit-any
  const pages: { data: any[]; text: string }[] = [];
  for (let cursor = "";;) {
    const { status, text, body } = await call("GET", path + cursor, options);
    assert.equal(status, 200, text);
    const { data, has_more, next_cursor } = body;
    pages.push({ data, text });
    assert.ok(pages.length < MOST_PAGES, "the list does not end");
    if (!has_more) {
      assert.equal(next_cursor, null);
      return pages;
    }
    if (data.length > 0) assert.equal(next_cursor, data.at(-1).id);
    cursor = `&starting_after=${next_cursor}`;
  }
}
