/** Lists of statuses of a payment that are written by hand: of deposits and in the shops. */

import assert from "node:assert/strict";
import { PAYMENT_STATUSES } from "../../shared/core/vocabulary.ts";
import { isOpenDeposit } from "../../shared/domain/payments/lifecycle.ts";
import { STATUSES } from "../../shared/domain/payment_statuses.ts";
import { readProjectFile } from "../support/documents/project_files.ts";

/** The shops, whose table `STATUS_AFTER` has the status of an order after each event. */
const SHOPS = [
  "examples/express_shop/order_book.js",
  "examples/fastapi_shop/order_book.py",
  "examples/supabase_orders/supabase/functions/_shared/orders.ts",
];

/** The statuses in the names of payments' events. The first event shows one that is pending. */
const statusesIn = (text: string) =>
  [...text.matchAll(/payment\.(\w+)/g)].map(([, name]) => name === "created" ? "pending" : name!);
const part = (text: string, pattern: RegExp) => pattern.exec(text)![1]!;

/** Each row: a file, the place of its list, and the statuses that the list has. */
const LISTS: [path: string, list: RegExp, statuses: readonly string[]][] = [
  [
    "docs/contract.md",
    /- While a payment is (.*?), or a\s+refund/s,
    PAYMENT_STATUSES.filter((status) => STATUSES[status].result === null),
  ],
  // The rest are payments that need no money at the address.
  [
    "supabase/schemas/invariants_providers.sql",
    /\nwhere case\n(.*?)\n {2}else false/s,
    PAYMENT_STATUSES.filter((status) =>
      STATUSES[status].result === "paid" || isOpenDeposit({ status })
    ),
  ],
];
for (const [path, list, statuses] of LISTS) {
  Deno.test(`${path} lists ${statuses.join(", ")}`, async () => {
    const text = part(await readProjectFile(path), list);
    const named = PAYMENT_STATUSES.filter((status) => new RegExp(`['\`]${status}['\`]`).test(text));
    assert.deepEqual(named, statuses);
  });
}

for (const path of SHOPS) {
  Deno.test(`STATUS_AFTER of ${path} has every result`, async () => {
    const table = part(await readProjectFile(path), /^(?:const )?STATUS_AFTER\b[^{]*\{(.*?)^\}/ms);
    const known = statusesIn(table);
    // An event that a shop does not know leaves its order as it is.
    const results = PAYMENT_STATUSES.filter((status) => STATUSES[status].result !== null);
    assert.deepEqual(results.filter((status) => !known.includes(status)), []);
  });
}
