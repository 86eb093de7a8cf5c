/**
 * `deno task error-page` writes docs/errors.md, the page that `doc_url` of every error leads to: a
 * heading for each code, and the values that messages refer to. `--check` writes nothing and fails
 * if the page differs.
 */

import { ERROR_CATALOGUE, ERROR_PAGE, type ErrorCode } from "../../shared/core/errors.ts";
import {
  TEST_CARDS,
  TEST_IBANS,
  TEST_WALLETS,
  type TestBehaviour,
} from "../../shared/domain/providers/test_values.ts";
import { ERROR_CODES } from "../../shared/schema/error.ts";
import { EVENT_TYPES } from "../../shared/schema/event_type.ts";
import { type Outcome, OUTCOMES } from "../../shared/schema/payment.ts";
import { ERROR_HELP } from "./error_help.ts";
import { diffLines } from "../diff_lines.ts";

/** Results of the test values. */
const RESULTS: Readonly<Record<TestBehaviour, string>> = {
  approve: "`completed`",
  decline: "`declined`, error `payment_declined`",
  no_funds: "`declined`, error `insufficient_funds`",
  authenticate: "`requires_action`: 3-D Secure",
  aml_block: "`declined`, error `aml_blocked`",
  expired: "no payment: error `invalid_parameter`",
  bank_return: "`failed`, `bank_return`",
  revert: "`failed`, `onchain_reverted`",
};

/** Results of the forced outcomes. */
const OUTCOME_RESULTS: Readonly<Record<Outcome, string>> = {
  success: "`completed`",
  declined: "`declined`, error `payment_declined`",
  pending: "`pending`",
  refunded: "`refunded`",
  chargeback: "`chargeback`",
};

const FILE = new URL(`../../${ERROR_PAGE}`, import.meta.url);

if (import.meta.main) Deno.exit(await main(Deno.args));

async function main(args: readonly string[]): Promise<number> {
  const page = renderErrorPage();
  if (!args.includes("--check")) {
    await Deno.writeTextFile(FILE, page);
    console.log(`Written: ${ERROR_PAGE}`);
    return 0;
  }
  const committed = await Deno.readTextFile(FILE).catch(() => "");
  if (committed !== page) {
    console.error(diffLines(committed, page));
    console.error(`${ERROR_PAGE} is not what the code makes: run "deno task error-page"`);
    return 1;
  }
  console.log(`${ERROR_PAGE} is what the code makes`);
  return 0;
}

/** The page as Markdown. */
export function renderErrorPage(): string {
  return [
    "# Errors",
    "",
    "<!-- Written by `deno task error-page` from shared/ and scripts/documents/error_page.ts. -->",
    "",
    ...wrap(
      "This page explains every error code of the API. `doc_url` of an error leads to the heading " +
        "of its code. Programs go by `code`; `message` is for people and may change; `param` names " +
        "the field, parameter or header at fault.",
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
    `HTTP ${status}, type \`${type}\`: ${when}.`,
    "",
    ...wrap(remedy),
    "",
    ...values,
  ];
}

function valueSections(): string[] {
  const cards = [...TEST_CARDS].map(([number, behaviour]) => [grouped(number), RESULTS[behaviour]]);
  const others = [
    ...[...TEST_IBANS].map(([iban, { behaviour }]) => [grouped(iban), RESULTS[behaviour]]),
    ...[...TEST_WALLETS].map(([address, behaviour]) => [address, RESULTS[behaviour]]),
  ];
  return [
    "## Test values",
    "",
    ...wrap(
      "The sandbox takes these card numbers and no others. Any expiry in the future, any CVC of " +
        "three digits (four for American Express) and any postal code will do.",
    ),
    "",
    ...table(["Card", "Payment"], cards),
    "",
    ...wrap(
      "Other valid IBANs and wallet addresses give `completed`. The case of letters does not matter " +
        "in these values.",
    ),
    "",
    ...table(["IBAN or wallet", "Payment"], others),
    "",
    ...wrap(
      "The field `outcome` forces a result and overrides every card, IBAN and wallet. The sandbox " +
        "function makes the same payments, and also answers 201 to a declined one.",
    ),
    "",
    ...table(
      ["`outcome`", "Payment"],
      OUTCOMES.map((outcome) => [outcome, OUTCOME_RESULTS[outcome]]),
    ),
    "",
    "## Event types",
    "",
    ...wrap(
      "A webhook endpoint can also ask for `*`, which is every event, and for `payment.*`, " +
        "`refund.*`, `transfer.*` and `webhook_endpoint.*`.",
    ),
    "",
    ...EVENT_TYPES.map((type) => `- \`${type}\``),
    "",
  ];
}

/** Groups of four characters, as on cards and in IBANs; 4-6-5 for American Express. */
function grouped(text: string): string {
  if (text.length === 15) return text.replace(/^(\d{4})(\d{6})/, "$1 $2 ");
  return text.replace(/(.{4})(?=.)/g, "$1 ");
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
