/** Renders the output of `deno task providers calls` and `facts`. */

import type { EntryAbout } from "../../shared/connectors/bank/booked_entries.ts";
import { formatAmount } from "../../shared/core/currency.ts";

/** A row of `pay.list_unsettled_operations`. A bigint is text. */
export interface ListedOperation {
  id: string;
  account: string;
  account_id: string;
  op: string;
  subject_id: string;
  refund_id: string | null;
  amount_minor: string;
  currency: string;
  state: "pending" | "operator";
  attempts: number;
  may_repeat: boolean;
  created_at: Date;
  next_attempt_at: Date | null;
  provider_reference: string | null;
  last_reply: string | null;
  subject_status: string | null;
}

/** A row of `pay.list_reported_events`. A bigint is text. */
export interface ListedProviderEvent {
  account_id: string;
  reference: string;
  account: string;
  outcome: string;
  op: string;
  state: string;
  subject_id: string | null;
  amount_minor: string;
  currency: string;
  booked_minor: string;
  happened_at: Date;
  received_at: Date;
  reason: string;
  environment_id: string;
  file: string | null;
  line: number | null;
  bank_reference: string | null;
  /** What the bank tells about it. "sealed": the command has no keys. */
  about: EntryAbout | "sealed" | null;
}

/**
 * Renders operations without a result.
 * @param is_all false: only those that need a person
 */
export function renderOperations(
  operations: readonly ListedOperation[],
  at_ms: number,
  is_all: boolean,
): string {
  if (operations.length === 0) {
    return is_all
      ? "No operations without a result\n"
      : 'No operations that need you. "calls --all" lists those under way too\n';
  }
  return operations.map((operation) => {
    const { id, state, op, subject_id, refund_id, subject_status, account, account_id } = operation;
    const amount = formatAmount(Number(operation.amount_minor), operation.currency);
    const subject = `${refund_id ?? subject_id} (${subject_status ?? "missing"})`;
    const object = operation.provider_reference === null
      ? ""
      : `, at the provider ${operation.provider_reference}`;
    const next = operation.next_attempt_at === null
      ? 'decide: "retry", or "settle" with --succeeded or --failed'
      : `the service ${operation.may_repeat ? "asks" : "syncs"} again at ` +
        operation.next_attempt_at.toISOString();
    return `${id}  ${state}  ${op} of ${subject}  ${amount}  ${
      ageOf(operation.created_at, at_ms)
    }\n` +
      `  account: ${account} ${account_id}${object}\n` +
      `  tried: ${operation.attempts} times; last reply: ${operation.last_reply ?? "none"}\n` +
      `  next: ${next}\n`;
  }).join("");
}

export function renderEvents(
  provider_events: readonly ListedProviderEvent[],
  at_ms: number,
): string {
  if (provider_events.length === 0) return "No unmatched provider events and no exceptions\n";
  return provider_events.map((event) => {
    const { account_id, reference, outcome, op, state, account, booked_minor } = event;
    const amount = formatAmount(Number(event.amount_minor), event.currency);
    const booked = Number(booked_minor) === 0 ? "nothing" : (Number(booked_minor) < 0 ? "-" : "") +
      formatAmount(Math.abs(Number(booked_minor)), event.currency);
    return `${account_id}/${reference}\n` +
      `  ${outcome}: ${op} ${state}  ${amount}  ${ageOf(event.received_at, at_ms)}\n` +
      `  account: ${account}; booked: ${booked}\n` +
      `  reason: ${event.reason}\n${entryLines(event)}`;
  }).join("");
}

/** The lines that help a person to find an entry of a bank and to recognise it. */
function entryLines(
  { about, op, state, file, line, bank_reference }: ListedProviderEvent,
): string {
  const lines: string[] = [];
  if (about === "sealed") lines.push("the other side: set BANK_DETAILS_KEYS to see it");
  else if (about !== null) {
    const { name, iban, account } = about.counterparty;
    const party = [name, iban ?? account].filter(Boolean).join(", ");
    const is_debit = (state === "succeeded") !== (op === "authorize");
    lines.push(`${is_debit ? "to" : "from"}: ${party || "not named"}`);
    if (about.text !== null) lines.push(`text: ${about.text.replaceAll(/\s+/g, " ")}`);
  }
  if (file !== null) {
    const reference = bank_reference === null ? "" : `, the bank's reference ${bank_reference}`;
    lines.push(`file: ${file}, line ${line}${reference}`);
  }
  return lines.map((text) => `  ${text}\n`).join("");
}

const UNITS = [[86_400_000, "days"], [3_600_000, "hours"], [60_000, "minutes"]] as const;

function ageOf(from: Date, at_ms: number): string {
  const age_ms = at_ms - from.getTime();
  for (const [unit_ms, unit] of UNITS) {
    if (age_ms >= 2 * unit_ms) return `${Math.floor(age_ms / unit_ms)} ${unit} ago`;
  }
  return `${Math.max(0, Math.floor(age_ms / 1000))} seconds ago`;
}
