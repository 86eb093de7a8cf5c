/** Sentences of documents that list rails list those for which `RAILS` says so, and no others. */

import assert from "node:assert/strict";
import { type Rail, railNames } from "../../shared/domain/rails.ts";
import { readProjectFile } from "../support/documents/project_files.ts";

const all = () => true;
const takesTime = ({ takes_time }: Rail) => takes_time;
const payerSends = ({ payer_sends }: Rail) => payer_sends !== null;
const returns = ({ returns }: Rail) => returns !== null;
const returnsNothing = ({ returns }: Rail) => returns === null;
const refundsToAccount = ({ refund_to }: Rail) => refund_to === "account";

/** Each row: a document, its sentence with … in place of the list, and the rails in the list. */
const SENTENCES: [path: string, sentence: string, holds: (rail: Rail) => boolean][] = [
  ["README.md", "payments by … over HTTP", all],
  ["CHANGELOG.md", "**Payments** by …: create", all],
  ["packages/sandbox/README.md", "payments by …, a ledger", all],
  ["tools/generate/openapi/introduction.md", "payments by …, keeps", all],
  ["docs/contract.md", "Manual leaves a … payment `pending`", takesTime],
  ["docs/contract.md", "A create by … that has neither", payerSends],
  ["docs/contract.md", "take the whole amount of a payment by … back", returns],
  ["docs/contract.md", "for a payment by …, it is `bank_return`", returns],
  ["docs/contract.md", "for a payment by …, it is 400", returnsNothing],
  ["docs/contract.md", "and a refund of a payment by …, take", refundsToAccount],
  ["docs/contract.md", "a refund by … without a `destination`", refundsToAccount],
];

for (const [path, sentence, holds] of SENTENCES) {
  Deno.test(`${path} has each rail in: ${sentence}`, async () => {
    const text = (await readProjectFile(path)).replace(/\s+/g, " ").toLowerCase();
    const [expected, other] = (["disjunction", "conjunction"] as const)
      .map((type) => sentence.replace("…", railNames(holds, type)).toLowerCase());
    assert.ok(text.includes(expected!) || text.includes(other!), expected);
  });
}
