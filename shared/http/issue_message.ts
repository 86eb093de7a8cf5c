/**
 * Messages of validation. Each turns an issue of zod into a sentence that names the field and the
 * values to send. A message repeats no text of the request except a short amount, because any other
 * text may be a secret (security §2, errors that leak).
 */

import type * as z from "zod";
import { containsCardNumber } from "../core/card_number.ts";
import { CURRENCIES, formatAmount, normalizeCurrency, parseDecimal } from "../core/currency.ts";
import { MAX_AMOUNT_MINOR, MAX_METADATA_KEY } from "../schema/limits.ts";
import { isOptional, memberOf, requirementOf } from "../schema/requirement.ts";

/** A field of a request that breaks a rule. */
interface Fault {
  /** The path of the field in the error: `card.number`. */
  param: string;
  sent: unknown;
  /** The original text of a number that is not written as a plain integer. */
  literal: string | undefined;
  /** The `currency` of the request, unchecked. */
  currency: unknown;
}

const AMOUNTS: ReadonlySet<string> = new Set(["amount", "amount_minor", "amount_received"]);

export function issueMessage(schema: z.ZodType, issue: z.core.$ZodIssue, fault: Fault): string {
  const { param, sent } = fault;
  if (issue.code === "custom") return `"${param}" ${issue.message}`;
  if (issue.code === "invalid_key") {
    const [field, name] = issue.path.slice(-2).map(String);
    return `A name in "${field}" has ${name!.length} characters: names have 1 to ` +
      `${MAX_METADATA_KEY} characters`;
  }
  const rule = issue.path.reduce<z.ZodType>(
    (outer, name) => memberOf(outer, name) ?? outer,
    schema,
  );
  const words = requirementOf(rule);
  if (sent === undefined) return `"${param}" is required: send ${words}`;
  if (sent === null) {
    return `"${param}" cannot be null: ${isOptional(rule) ? "leave it out, or " : ""}send ${words}`;
  }
  if (AMOUNTS.has(param)) return amountMessage(fault) ?? `"${param}" must be ${words}`;
  const is_quoted = issue.code === "invalid_type" && issue.expected === "number" &&
    typeof sent === "string" && /^\d+$/.test(sent);
  const is_length = issue.code === "too_small" || issue.code === "too_big";
  const length = is_length && typeof sent === "string" && words.startsWith("text ")
    ? lengthOf(sent)
    : "";
  return `"${param}" must be ${words}${is_quoted ? ", without quotes" : length}`;
}

function lengthOf(text: string): string {
  return text === "" ? ": it is empty" : `: it has ${text.length}`;
}

/** Makes the message for an integer that is not written as one: `12.0`, `1e1`. */
export function literalMessage(fault: Fault): string {
  return (AMOUNTS.has(fault.param) ? amountMessage(fault) : null) ??
    `"${fault.param}" must be a whole number, written with digits only`;
}

/** Characters of an amount about which a message says more than its rule. */
const MAX_AMOUNT_CHARACTERS = 40;
const REPEATABLE = /^\d{1,10}(\.\d{1,8})?$/;

/** Makes the message for an amount in the currency of the request, or null for other values. */
function amountMessage({ param, sent, literal, currency: code }: Fault): string | null {
  // A text of an object would need its `toString`, which is a member like any other here.
  if (typeof sent !== "number" && typeof sent !== "string") return null;
  const text = literal ?? String(sent);
  if (text.length > MAX_AMOUNT_CHARACTERS || containsCardNumber(text)) return null;
  const currency = typeof code === "string" && CURRENCIES.has(normalizeCurrency(code))
    ? normalizeCurrency(code)
    : null;
  if (typeof sent === "number") {
    const about = (amount_minor: number) =>
      currency ? `, which is ${formatAmount(amount_minor, currency)}` : ", in minor units";
    if (sent <= 0) return `"${param}" must be at least 1${about(1)}`;
    if (sent > MAX_AMOUNT_MINOR) {
      return `"${param}" must be at most ${MAX_AMOUNT_MINOR}${about(MAX_AMOUNT_MINOR)}`;
    }
    if (Number.isInteger(sent) && !text.includes(".")) {
      return `"${param}" must be written with digits only: send ${sent}`;
    }
  }
  if (!REPEATABLE.test(text)) return null;
  if (!text.includes(".")) {
    return `"${param}" must be a number without quotes: send ${text}, not "${text}"`;
  }
  return decimalMessage(param, text, currency);
}

/** Makes the message for a decimal amount such as `19.99`, with its value in minor units. */
function decimalMessage(param: string, text: string, currency: string | null): string {
  const rule = "Amounts are whole minor units";
  if (!currency) return `${rule} of the currency: 19.99 EUR is 1999, and 1999 JPY is 1999`;
  const minor = parseDecimal(text, currency);
  if (minor !== null && minor > 0) {
    return `${rule}: ${text} ${currency} is ${minor}. Send "${param}": ${minor}`;
  }
  const digits = CURRENCIES.get(currency)!;
  if (minor === 0) return `"${param}" must be at least 1, which is ${formatAmount(1, currency)}`;
  if (digits === 0) {
    const whole = Math.max(1, Math.round(Number(text)));
    return `${rule}, and ${currency} has no decimals: send ${whole} for ${whole} ${currency}`;
  }
  return `${rule}, and ${currency} has ${digits} decimals: ${text} ${currency} has too many`;
}
