/** Pages of lists: those that share statements, and those that read only rows that they show. */

import assert from "node:assert/strict";
import { isCheap, isPlain, type PageRequest } from "../../shared/store/page_request.ts";

/** [kind, filters, whether pages share a statement, whether they read only what they show] */
const PAGES: [PageRequest["kind"], Record<string, string>, plain: boolean, cheap: boolean][] = [
  ["payments", {}, true, true],
  ["payments", { status: "pending" }, false, true],
  ["payments", { status: "completed" }, false, false],
  ["payments", { currency: "EUR" }, false, false],
  ["payments", { reference: "1", id_from: "pay_" }, false, true],
  ["payments", { reference: "1", currency: "EUR" }, false, false],
  ["refunds", {}, false, true],
  ["refunds", { status: "pending" }, false, false],
  ["requests", { status: "200", method: "GET" }, false, true],
];
for (const [kind, filters, plain, cheap] of PAGES) {
  Deno.test(`a page of ${kind} by ${JSON.stringify(filters)}: plain ${plain}, cheap ${cheap}`, () => {
    const page = { kind, filters, limit: 10, starting_after: null };
    assert.deepEqual([isPlain(page), isCheap(page)], [plain, cheap]);
  });
}
Deno.test("a page of the payments of a parent is not plain", () => {
  const page = { kind: "payments" as const, filters: {}, limit: 10, starting_after: null };
  assert.equal(isPlain({ ...page, parent_id: "pay_1" }), false);
});
