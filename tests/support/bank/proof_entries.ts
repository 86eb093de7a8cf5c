/**
 * The entries of the proof of an import: payments by bank transfer with 1 % of every trouble, and the
 * result that each has to have.
 */

import { creditorReference } from "../../../shared/core/creditor_reference.ts";
import type { Movement } from "./double.ts";

/** A payment by bank transfer that waits for its money. */
interface WaitingPayment {
  id: string;
  amount: number;
}

/** A detail for `write_statement.py`. */
type ProofDetail = Omit<Movement, "family">;

/** An entry for `write_statement.py`. */
export interface ProofEntry {
  amount: number;
  family: string;
  /** `AcctSvcrRef` */
  number?: string;
  charge?: number;
  is_reversal?: true;
  details: ProofDetail[];
}

/** The result of a payment: its status, the amount that came, and provider events for people. */
interface Result {
  status: string;
  received: number;
  reported: number;
}

/** Entries with their result, by the amount of the payment and its reference. */
type Trouble = (amount: number, reference: string) => Result & { entries: ProofEntry[] };

/** The account of all payers: an IBAN of the interface. */
const PAYER = { name: "Payer", iban: "NL91ABNA0417164300" };
/** A right reference, of no payment. */
const UNKNOWN = creditorReference("pay_unknown");

const credit = (amount: number, text: string): ProofEntry => ({
  amount,
  family: "RCDT ESCT",
  details: [{ amount, text, party: PAYER }],
});
const paid = (received: number, reported: number, entries: ProofEntry[]) => ({
  status: "completed",
  received,
  reported,
  entries,
});
/** The payment gets nothing. */
const unpaid = (status: string, entries: ProofEntry[]) => ({
  status,
  received: status === "failed" ? entries[0]!.amount : 0,
  reported: 1,
  entries,
});
const mangled = (reference: string) =>
  `inv 17 ${reference.toLowerCase().replace(/(.{4})/g, "$1 ")}thanks`;

/** 1 % of the payments have each of these. */
const TROUBLES: Record<string, Trouble> = {
  less: (amount, reference) => ({
    status: "pending",
    received: amount - 1,
    reported: 0,
    entries: [credit(amount - 1, reference)],
  }),
  more: (amount, reference) => paid(amount + 7, 1, [credit(amount + 7, reference)]),
  twice: (amount, reference) =>
    paid(2 * amount, 1, [credit(amount, reference), credit(amount, reference)]),
  late: (amount, reference) => unpaid("failed", [credit(amount, reference)]),
  "wrong reference": (amount) => unpaid("pending", [credit(amount, UNKNOWN)]),
  "mangled reference": (amount, reference) => paid(amount, 0, [credit(amount, mangled(reference))]),
  "cut reference": (amount, reference) => paid(amount, 0, [credit(amount, reference.slice(0, 12))]),
  "reference cut early": (amount, reference) =>
    unpaid("pending", [credit(amount, reference.slice(0, 11))]),
  "no reference": (amount) => unpaid("pending", [credit(amount, "thank you")]),
  "no details": (amount) => unpaid("pending", [{ amount, family: "RCDT ESCT", details: [] }]),
  "structured reference": (amount, reference) =>
    paid(amount, 0, [{ ...credit(amount, ""), details: [{ amount, reference }] }]),
  "unknown debit": (amount, reference) =>
    paid(amount, 1, [
      credit(amount, reference),
      { amount: -99, family: "ICDT ESCT", details: [{ amount: -99, text: "rent" }] },
    ]),
  charges: (amount, reference) =>
    paid(amount, 0, [
      credit(amount, reference),
      { amount: -150, family: "MCOP CHRG", details: [] },
    ]),
  "charge inside": (amount, reference) =>
    paid(amount, 0, [{ ...credit(amount, reference), amount: amount - 15, charge: -15 }]),
  reversal: (amount, reference) =>
    paid(amount, 2, [
      credit(amount, reference),
      credit(333, "a mistake of the bank"),
      { ...credit(333, "a mistake of the bank"), amount: -333, is_reversal: true },
    ]),
  "without a number": (amount, reference) => paid(amount, 0, [credit(amount, reference)]),
  "known before": (amount, reference) => paid(amount, 0, [credit(amount, reference)]),
  "details later": (amount, reference) => paid(amount, 0, [credit(amount, reference)]),
};
const NAMES = Object.keys(TROUBLES);
/** Troubles whose entries have no reference of the bank. */
const WITHOUT_NUMBER: readonly string[] = ["without a number"];

/** The payments whose time is over before their money comes. */
export function isLate(at: number): boolean {
  return NAMES[at % 100] === "late";
}

/** The entries of payments in the three files of the bank, and the results of the payments. */
export function entriesOf(payments: readonly WaitingPayment[]): {
  /** A notification before the statement. */
  before: ProofEntry[];
  statement: ProofEntry[];
  /** A notification after it. */
  after: ProofEntry[];
  results: Map<string, Result>;
} {
  const before: ProofEntry[] = [];
  const statement: ProofEntry[] = [];
  const after: ProofEntry[] = [];
  const results = new Map<string, Result>();
  for (const [at, { id, amount }] of payments.entries()) {
    const name = NAMES[at % 100] ?? "";
    const reference = creditorReference(id);
    const trouble = TROUBLES[name] ??
      ((amount: number) => paid(amount, 0, [credit(amount, reference)]));
    const { entries, ...result } = trouble(amount, reference);
    results.set(id, result);
    for (const [n, entry] of entries.entries()) {
      const { number: _, ...rest } = entry;
      const numbered = WITHOUT_NUMBER.includes(name)
        ? rest
        : { ...rest, number: `EUR2026${at}-${n}` };
      if (name === "known before") before.push(numbered);
      if (name === "details later") after.push(numbered);
      statement.push(name === "details later" ? { ...numbered, details: [] } : numbered);
    }
  }
  return { before, statement, after, results };
}
