/** The tables of test values in docs/errors.md and in the introduction of the reference. */

import { normalizeCardNumber } from "../../shared/core/card_number.ts";
import { USUAL_ADVICE } from "../../shared/core/errors.ts";
import { OUTCOMES } from "../../shared/core/vocabulary.ts";
import {
  OUTCOME_RESULTS,
  TEST_CARDS,
  TEST_IBANS,
  TEST_RESULTS,
  TEST_TOKENS,
  TEST_WALLETS,
  testCard,
  type TestValue,
} from "../../shared/domain/providers/test_values.ts";
import type { Outcome } from "../../shared/schema/payment.ts";
import { renderTable } from "./markdown_table.ts";

/** The test cards, as the lines of a table. */
export const CARD_TABLE = renderTable(["Card", "Payment"], TEST_CARDS.map(valueRow));

/** The test tokens, as the lines of a table. */
export const TOKEN_TABLE = renderTable(
  ["Token", "Card", "Payment"],
  Object.entries(TEST_TOKENS).map(([token, card]) => [
    token,
    `\`${card}\``,
    resultText(TEST_RESULTS[testCard(normalizeCardNumber(card))!]),
  ]),
);

/** The test IBANs and wallets, as the lines of a table. */
export const ACCOUNT_TABLE = renderTable(
  ["IBAN or wallet", "Payment"],
  [...TEST_IBANS, ...TEST_WALLETS].map(valueRow),
);

/** The outcomes, as the lines of a table. */
export const OUTCOME_TABLE = renderTable(
  ["`outcome`", "Payment"],
  OUTCOMES.map((outcome) => [outcome, resultText(OUTCOME_RESULTS[outcome])]),
);

function valueRow({ value, behaviour }: TestValue): string[] {
  return [value, resultText(TEST_RESULTS[behaviour])];
}

/** The result of a test value or of an outcome. */
function resultText(
  response: typeof TEST_RESULTS[TestValue["behaviour"]] | typeof OUTCOME_RESULTS[Outcome],
): string {
  switch (response.result) {
    case "refused":
      return "no payment: error `invalid_parameter`";
    case "declined":
      return `\`declined\`, error \`${response.code}\`, advice \`${USUAL_ADVICE[response.code]}\``;
    case "failed":
      return `\`failed\`, \`${response.code}\``;
    case "processing":
      return "`processing`: the response is late";
    case "requires_action":
      return "`requires_action`: 3-D Secure";
    default:
      return `\`${response.result}\``;
  }
}
