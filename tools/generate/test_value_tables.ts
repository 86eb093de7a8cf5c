/** The tables of test values in docs/errors.md and in the introduction of the reference. */

import { normalizeCardNumber } from "../../shared/core/card_number.ts";
import { USUAL_ADVICE } from "../../shared/core/errors.ts";
import { OUTCOMES } from "../../shared/core/vocabulary.ts";
import {
  OF_COLLECTIONS,
  OUTCOME_RESULTS,
  SAVED_RESULTS,
  type SimulatedResult,
  TEST_CARDS,
  TEST_IBANS,
  TEST_RESULTS,
  TEST_TOKENS,
  TEST_WALLETS,
  type TestValue,
} from "../../shared/domain/providers/test_values.ts";
import type { Outcome } from "../../shared/schema/payment_body.ts";

/** The token that stands for each card. */
const TOKENS = new Map(
  Object.entries(TEST_TOKENS).map(([token, card]) => [normalizeCardNumber(card), `\`${token}\``]),
);

export const CARD_TABLE = renderTable(
  ["Card", "Token", "Payment"],
  TEST_CARDS.map((card) => {
    const [value, payment] = valueRow(card);
    return [value!, TOKENS.get(normalizeCardNumber(card.value)) ?? "", payment!];
  }),
);

export const ACCOUNT_TABLE = renderTable(
  ["IBAN or wallet", "Payment"],
  [...TEST_IBANS, ...TEST_WALLETS].map(valueRow),
);

/** Cards whose payments differ once they are saved with `off_session`, as the lines of a table. */
const SAVED_TABLE = renderTable(
  ["Saved card", "With the payer present", "`off_session`"],
  TEST_CARDS.flatMap(({ value, behaviour }) => {
    const { on_session, off_session } = SAVED_RESULTS[behaviour] ?? {};
    const results = [on_session, off_session].map((result) =>
      resultText(result ?? TEST_RESULTS[behaviour])
    );
    return off_session === undefined ? [] : [[value, ...results]];
  }),
);

/** The end of the instrument after a return with each code. */
const ENDS: Readonly<Record<string, string>> = {
  MD01: "ended, `revoked`",
  AC04: "ended, `account_closed`",
};

/** The IBANs that act only in collections, as the lines of a table. */
const COLLECTION_TABLE = renderTable(
  ["IBAN with a mandate", "Payment", "`return_code`", "Instrument"],
  TEST_IBANS.flatMap(({ value, behaviour }) => {
    const result = TEST_RESULTS[behaviour];
    if (!OF_COLLECTIONS.has(behaviour) || !("return_code" in result)) return [];
    const text = result.result === "failed"
      ? "`failed` on the due date"
      : "`completed`, and 20 days later `failed`";
    const code = result.return_code;
    return [[value, text, `\`${code}\``, ENDS[code] ?? "stays `active`"]];
  }),
);

const OUTCOME_TABLE = renderTable(
  ["`outcome`", "Payment"],
  OUTCOMES.map((outcome) => [outcome, resultText(OUTCOME_RESULTS[outcome])]),
);

/** The tables of docs/errors.md, in no particular order. */
export const VALUE_TABLES = [
  ...[CARD_TABLE, ACCOUNT_TABLE, SAVED_TABLE, COLLECTION_TABLE, OUTCOME_TABLE],
];

function valueRow({ value, behaviour }: TestValue): string[] {
  return [value, resultText(TEST_RESULTS[OF_COLLECTIONS.has(behaviour) ? "approve" : behaviour])];
}

function resultText(
  response:
    | typeof TEST_RESULTS[TestValue["behaviour"]]
    | typeof OUTCOME_RESULTS[Outcome]
    | SimulatedResult,
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

/** Returns the lines of a table, formatted as by `deno fmt`. The first column is code. */
function renderTable(head: readonly string[], rows: readonly string[][]): string[] {
  const cells = [[...head], ...rows.map(([first, ...rest]) => [`\`${first}\``, ...rest])];
  const widths = head.map((_, column) => Math.max(...cells.map((row) => row[column]!.length)));
  const line = (row: readonly string[], fill = " ") =>
    `| ${row.map((cell, column) => cell.padEnd(widths[column]!, fill)).join(" | ")} |`;
  return [
    line(cells[0]!),
    line(head.map(() => ""), "-"),
    ...cells.slice(1).map((row) => line(row)),
  ];
}
