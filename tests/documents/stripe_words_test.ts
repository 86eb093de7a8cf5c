/** docs/coming-from-stripe.md: its tables have every status, event and code of ours. */

import assert from "node:assert/strict";
import {
  DISPUTE_STATUSES,
  EVENT_TYPES,
  PAYMENT_STATUSES,
  REFUND_STATUSES,
} from "../../shared/core/vocabulary.ts";
import { ERROR_CODES } from "../../shared/schema/error.ts";
import { readProjectFile } from "../support/documents/project_files.ts";
import { codeTexts, tableRows } from "../support/documents/readme_document.ts";

const PAGE = await readProjectFile("docs/coming-from-stripe.md");
/** Codes that Stripe has no word for, or that no integration provokes by itself. */
const CODES_LEFT_OUT = [
  "invalid_json",
  "method_not_allowed",
  "origin_not_allowed",
  "payload_too_large",
  "provider_refused",
  "unsupported_media_type",
];

for (
  const [header, expected] of [
    ["PaymentIntent at Stripe", PAYMENT_STATUSES],
    ["Refund at Stripe", REFUND_STATUSES],
    ["Dispute at Stripe", DISPUTE_STATUSES],
  ] as const
) {
  Deno.test(`the table "${header}" has every status of ours and no other`, () => {
    const shown = tableRows(PAGE, header).flatMap((row) => codeTexts(row.at(-1)!));
    assert.deepEqual([...new Set(shown)].sort(), expected.toSorted());
  });
}

Deno.test("the tables with the columns of both have every event type and error code of ours", () => {
  const shown = tableRows(PAGE, "Stripe").flatMap((row) => codeTexts(row.at(-1)!));
  const missing = [...EVENT_TYPES, ...ERROR_CODES.filter((code) => !CODES_LEFT_OUT.includes(code))]
    .filter((word) => !shown.includes(word));
  assert.deepEqual(missing, []);
});
