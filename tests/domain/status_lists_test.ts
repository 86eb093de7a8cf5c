/**
 * Lists of the statuses of a payment that the type check does not read, in SQL and in the shops.
 */

import assert from "node:assert/strict";
import { PAYMENT_STATUSES } from "../../shared/core/vocabulary.ts";
import { canBecome } from "../../shared/domain/payments/lifecycle.ts";
import { readProjectFile } from "../support/documents/project_files.ts";
import { paymentWith } from "../support/domain/decided_change.ts";

const INVARIANTS = await readProjectFile("supabase/schemas/invariants_records.sql");

/** Events of a payment that keeps its status, and a return of a refunded payment. */
const NO_MOVES = ["pending>pending", "processing>processing", "refunded>failed"];
/** Statuses whose event can stand directly before that of a refund. */
const MAY_HAVE_REFUNDS = [
  "completed",
  "failed",
  "partially_refunded",
  "refunded",
  "chargeback",
];
/** The shops, whose table `STATUS_AFTER` has the status of an order after each event. */
const SHOPS = [
  "examples/express_shop/order_book.js",
  "examples/fastapi_shop/order_book.py",
  "examples/supabase_orders/supabase/functions/_shared/orders.ts",
];

/** The statuses in the names of the events of payments. The first event shows one that is pending. */
const statusesIn = (text: string) =>
  [...text.matchAll(/payment\.(\w+)/g)].map(([, name]) => name === "created" ? "pending" : name!);
const part = (text: string, pattern: RegExp) => pattern.exec(text)![1]!;
const sorted = (words: Iterable<string>) => [...new Set(words)].sort();

Deno.test("pay.invariant_moves allows every move of the lifecycle and no other", () => {
  const legal = part(INVARIANTS, /\(values\s(.*?)\) as legal/s);
  const moves = [...legal.matchAll(/\('(payment\.\w+)', '\{(.*?)\}'/gs)].flatMap(([, from, to]) =>
    statusesIn(to!).map((status) => `${statusesIn(from!)}>${status}`)
  );
  const expected = PAYMENT_STATUSES.flatMap((from) =>
    PAYMENT_STATUSES.filter((to) => canBecome(paymentWith({ status: from }), to))
      .map((to) => `${from}>${to}`)
  );
  assert.deepEqual(sorted(moves), sorted([...expected, ...NO_MOVES]));
});

Deno.test("pay.invariant_moves knows the statuses after which no event of a refund comes", () => {
  const list = part(
    INVARIANTS,
    /'refund\.%' then m\.directly_before is null\s+or .*? in \((.*?)\)/s,
  );
  const rest = PAYMENT_STATUSES.filter((status) => !MAY_HAVE_REFUNDS.includes(status));
  assert.deepEqual(sorted(statusesIn(list)), sorted(rest));
});

for (const path of SHOPS) {
  Deno.test(`STATUS_AFTER of ${path} has every status`, async () => {
    const table = part(await readProjectFile(path), /^(?:const )?STATUS_AFTER\b[^{]*\{(.*?)^\}/ms);
    assert.deepEqual(sorted(statusesIn(table)), sorted(PAYMENT_STATUSES));
  });
}
