/**
 * Writes docs/errors.md, to which `doc_url` of every error leads. It has a heading for each code,
 * and the values that messages refer to.
 */

import { ERROR_CATALOGUE, type ErrorCode } from "../../shared/core/errors.ts";
import { EVENT_PATTERNS, EVENT_TYPES } from "../../shared/core/vocabulary.ts";
import { ERROR_CODES } from "../../shared/schema/error.ts";
import { ERROR_HELP } from "./error_help.ts";
import { wrapped } from "./wrapped.ts";
import {
  ACCOUNT_TABLE,
  CARD_TABLE,
  COLLECTION_TABLE,
  OUTCOME_TABLE,
  SAVED_TABLE,
} from "./test_value_tables.ts";

export function renderErrorPage(): string {
  return [
    "# Errors",
    "",
    "<!-- Written by `deno task generate` from shared/ and tools/generate/error_page.ts. -->",
    "",
    ...wrap(
      "Every error code of the API, with its cause and its remedy. `doc_url` of an error leads to the heading " +
        "of its code. Programs decide by `code`; `message` is for people and may change; `param` " +
        "names the field, parameter or header at fault.",
    ),
    "",
    "A 402 stores the payment. Any other 4xx means that nothing happened.",
    "",
    ...wrap(
      "A decline has `advice`, the next step that helps: `retry_later` (the same method in hours or " +
        "days), `use_another_method` (or its data again), `do_not_retry` (the method will be declined " +
        "again) or `authenticate` (a new payment that the payer authenticates). With a live key it is " +
        "the provider's own where it gives one.",
    ),
    "",
    ...ERROR_CODES.flatMap(sectionOf),
    ...valueSections(),
  ].join("\n");
}

/** Returns the section of a code as Markdown, with the values that its messages refer to. */
export function explainError(code: ErrorCode): string {
  const values = code === "invalid_parameter" ? valueSections() : [];
  return [...sectionOf(code), ...values].join("\n");
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
      "The sandbox takes these card numbers and no others. Use any expiry in the future, any CVC of " +
        "three digits (four for American Express) and any postal code. In place of a number it " +
        "takes a token as `card: {token}`, again and again. With a live key the provider's form in " +
        "the browser makes the token, which pays once unless its first payment has `save`. The " +
        "response is 201, or the HTTP status of the error.",
    ),
    "",
    ...CARD_TABLE,
    "",
    ...wrap(
      "Other valid IBANs and wallet addresses give `completed`. With a `mandate` an IBAN has its result " +
        "on the due date ([contract](contract.md#collections)). The case of letters does not matter " +
        "in these values.",
    ),
    "",
    ...ACCOUNT_TABLE,
    "",
    ...wrap(
      "A card that was saved with `off_session` has the result of the card, also where nobody is " +
        "present, except:",
    ),
    "",
    ...SAVED_TABLE,
    "",
    ...COLLECTION_TABLE,
    "",
    ...wrap(
      "The field `outcome` forces a result and overrides every card, IBAN and wallet. The sandbox " +
        "function makes the same payments, but returns 201 for a declined one.",
    ),
    "",
    ...OUTCOME_TABLE,
    "",
    "## Event types",
    "",
    ...wrap(
      "A webhook endpoint can also register for `*`, which is every event, and for these patterns: " +
        EVENT_PATTERNS.slice(1).map((pattern) => `\`${pattern}\``).join(", ") + ".",
    ),
    "",
    ...wrap(EVENT_TYPES.map((type) => `\`${type}\``).join(", ") + "."),
    "",
  ];
}

/** Lines of at most 100 characters. */
function wrap(text: string): string[] {
  return wrapped(text.split(" "), 100);
}
