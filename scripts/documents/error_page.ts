/**
 * Writes docs/errors.md, to which `doc_url` of every error leads. It has a heading for each code,
 * and the values that messages refer to.
 */

import { ERROR_CATALOGUE, type ErrorCode } from "../../shared/core/errors.ts";
import { EVENT_TYPES, OUTCOMES } from "../../shared/core/vocabulary.ts";
import {
  OUTCOME_RESULTS,
  TEST_CARDS,
  TEST_IBANS,
  TEST_RESULTS,
  TEST_WALLETS,
  type TestValue,
} from "../../shared/domain/providers/test_values.ts";
import { ERROR_CODES } from "../../shared/schema/error.ts";
import type { Outcome } from "../../shared/schema/payment.ts";
import { ERROR_HELP } from "./error_help.ts";

/** Returns the page as Markdown. */
export function renderErrorPage(): string {
  return [
    "# Errors",
    "",
    "<!-- Written by `deno task generate` from shared/ and scripts/documents/error_page.ts. -->",
    "",
    ...wrap(
      "This page explains every error code of the API. `doc_url` of an error leads to the heading " +
        "of its code. Programs decide by `code`; `message` is for people and may change; `param` " +
        "names the field, parameter or header at fault.",
    ),
    "",
    "A 402 stores the payment. Any other 4xx means that nothing happened.",
    "",
    ...table(["Code", "HTTP", "Type"], ERROR_CODES.map(rowOf)),
    "",
    ...ERROR_CODES.flatMap(sectionOf),
    ...valueSections(),
  ].join("\n");
}

function rowOf(code: ErrorCode): string[] {
  const { status, type } = ERROR_CATALOGUE[code];
  return [code, String(status), `\`${type}\``];
}

function sectionOf(code: ErrorCode): string[] {
  const { status, type } = ERROR_CATALOGUE[code];
  const { when, remedy } = ERROR_HELP[code];
  const values = code === "invalid_parameter"
    ? [
      "Messages refer to the [test values](#test-values) and [event types](#event-types) below.",
      "",
    ]
    : [];
  return [
    `## ${code}`,
    "",
    ...wrap(`HTTP ${status}, type \`${type}\`: ${when}.`),
    "",
    ...wrap(remedy),
    "",
    ...values,
  ];
}

function valueSections(): string[] {
  return [
    "## Test values",
    "",
    ...wrap(
      "The sandbox takes these card numbers and no others. Use any expiry in the future, any " +
        "CVC of three digits (four for American Express) and any postal code. The answer is 201, or " +
        "the HTTP status of the error.",
    ),
    "",
    ...table(["Card", "Payment"], TEST_CARDS.map(valueRow)),
    "",
    ...wrap(
      "Other valid IBANs and wallet addresses give `completed`. The case of letters does not matter " +
        "in these values.",
    ),
    "",
    ...table(["IBAN or wallet", "Payment"], [...TEST_IBANS, ...TEST_WALLETS].map(valueRow)),
    "",
    ...wrap(
      "The field `outcome` forces a result and overrides every card, IBAN and wallet. The sandbox " +
        "function makes the same payments, but answers 201 to a declined one.",
    ),
    "",
    ...table(
      ["`outcome`", "Payment"],
      OUTCOMES.map((outcome) => [outcome, resultText(OUTCOME_RESULTS[outcome])]),
    ),
    "",
    "## Event types",
    "",
    ...wrap(
      "A webhook endpoint can also register for `*`, which is every event, and for `payment.*`, " +
        "`refund.*`, `transfer.*` and `webhook_endpoint.*`.",
    ),
    "",
    ...EVENT_TYPES.map((type) => `- \`${type}\``),
    "",
  ];
}

function valueRow({ value, behaviour }: TestValue): string[] {
  return [value, resultText(TEST_RESULTS[behaviour])];
}

/** The result of a test value or of an outcome. */
function resultText(
  answer: typeof TEST_RESULTS[TestValue["behaviour"]] | typeof OUTCOME_RESULTS[Outcome],
): string {
  switch (answer.result) {
    case "refused":
      return "no payment: error `invalid_parameter`";
    case "declined":
      return `\`declined\`, error \`${answer.code}\``;
    case "failed":
      return `\`failed\`, \`${answer.code}\``;
    case "requires_action":
      return "`requires_action`: 3-D Secure";
    default:
      return `\`${answer.result}\``;
  }
}

/** A Markdown table as `deno fmt` writes it; the first column is code. */
function table(head: readonly string[], rows: readonly string[][]): string[] {
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

/** Lines of at most 100 characters. */
function wrap(text: string): string[] {
  const lines = [""];
  for (const word of text.split(" ")) {
    const line = lines.at(-1)!;
    if (line !== "" && line.length + 1 + word.length > 100) lines.push(word);
    else lines[lines.length - 1] = line === "" ? word : `${line} ${word}`;
  }
  return lines;
}
