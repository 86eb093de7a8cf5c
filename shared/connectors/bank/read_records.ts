/**
 * The records that a bank file is read into, in the order of the file: a message, and its
 * statements, each followed by its entries, each followed by its details; or the statuses of a
 * report. Texts are as the bank wrote them. Source: ISO 20022, camt.052 to .054, pain.002,
 * camt.029.
 */

export type MessageKind = "camt.052" | "camt.053" | "camt.054" | "pain.002" | "camt.029";

/** Which way money moved, seen from the account. */
export type Direction = "credit" | "debit";

/** One message. A file has one, or several in an envelope. */
export interface MessageRecord {
  record: "message";
  line: number;
  kind: MessageKind;
  /** Such as `08`, or null if the file has no namespace. */
  version: string | null;
  message_id: string | null;
  /** As the bank wrote it: often without a time zone. */
  created_at: string | null;
}

/** An account's statement, report or notification. */
export interface StatementRecord {
  record: "statement";
  line: number;
  statement_id: string | null;
  /** The IBAN or another number, without spaces and in upper case. */
  account: string;
  currency: string | null;
  /** The electronic number, or the legal one. */
  sequence: string | null;
  page: Page | null;
  balances: BalanceRecord[];
  /**
   * The booked balances that all entries of the statement lie between; null if it has no closing
   * one. One page of several has no opening one.
   */
  booked: { opening: BalanceRecord | null; closing: BalanceRecord } | null;
}

/** A statement of another account, which is not read further. */
interface OtherStatementRecord {
  record: "other_statement";
  line: number;
  element: string;
  /** As in a statement; empty: it names none. */
  account: string;
  /** Null, unless the number is right and only the currency is another one. */
  currency: string | null;
}

interface StatementEndRecord {
  record: "statement_end";
  line: number;
  /** Whether the booked entries come to the difference of its booked balances. */
  is_proven: boolean;
}

/** The page of a statement that comes in several parts. */
export interface Page {
  number: number;
  is_last: boolean;
}

/** A balance. Below zero, the account is overdrawn. */
export interface BalanceRecord {
  line: number;
  /** Such as `OPBD` and `CLBD`. */
  code: string | null;
  amount_minor: number;
  currency: string;
  date: string | null;
}

/** The code of a transaction, which tells its kind. */
export interface BankCode {
  domain: string | null;
  family: string | null;
  sub_family: string | null;
  proprietary: string | null;
}

export interface EntryRecord {
  record: "entry";
  line: number;
  account: string;
  /** The same in a report, a notification and a statement that tell of the same entry. */
  identity: string;
  status: "booked" | "pending" | "information";
  /** As the money moved, also in a reversal. */
  direction: Direction;
  amount_minor: number;
  currency: string;
  booked_on: string | null;
  value_on: string | null;
  is_reversal: boolean;
  bank_code: BankCode;
  bank_reference: string | null;
  /**
   * The bank's text. It belongs to the entry, not to each of its details. Null also if it stands
   * after more than 1 000 of them.
   */
  information: string | null;
  batch: Batch | null;
  /**
   * `details`: the amounts of the details, with the charge, are the amount of the entry, so they
   * are booked and the total is not. `total`: the details tell only what the entry is about.
   */
  booked_by: "details" | "total";
  /** What the bank took out of a credit or added to a debit. */
  charge_minor: number;
}

/** The batch of ours that an entry books. */
export interface Batch {
  message_id: string | null;
  payment_information_id: string | null;
  transactions: number | null;
}

/** One transaction of an entry. In a return, the ids are those of the original transaction. */
export interface DetailRecord {
  record: "detail";
  line: number;
  direction: Direction;
  /** In the currency of the entry, or null if the bank did not tell it. */
  amount_minor: number | null;
  message_id: string | null;
  payment_information_id: string | null;
  instruction_id: string | null;
  /** Null also for NOTPROVIDED. */
  end_to_end_id: string | null;
  transaction_id: string | null;
  uetr: string | null;
  mandate_id: string | null;
  bank_reference: string | null;
  bank_code: BankCode;
  /** Structured references: ISO 11649 (`SCOR`), Swiss QR and ESR, numbers of documents. */
  references: Reference[];
  /** The lines of the unstructured text. */
  remittance: string | null;
  /** Other places in which banks put the reference of a payer. */
  other_references: string[];
  counterparty: Party;
  return: Reason | null;
  information: string | null;
}

export interface Reference {
  /** Such as `SCOR`, `QRR` or `CINV`. */
  type: string | null;
  reference: string;
}

/** The other side of a transaction. */
export interface Party {
  name: string | null;
  iban: string | null;
  /** A number that is no IBAN. */
  account: string | null;
  bic: string | null;
}

/** A reason of a bank: a code of ISO 20022 or of its own, and text. */
export interface Reason {
  code: string | null;
  information: string | null;
}

export type StatusResult =
  | "accepted"
  | "rejected"
  | "pending"
  /** It differs between the payments. Their own statuses tell how. */
  | "partial"
  /** The verification of payee has a result, or waits: neither accepted nor rejected. */
  | "payee_check";

/** A status of pain.002, or the result of a recall (camt.029). */
export interface StatusRecord {
  record: "status" | "cancellation";
  line: number;
  level: "group" | "payment_information" | "transaction";
  code: string;
  result: StatusResult;
  reasons: Reason[];
  original_message_id: string | null;
  payment_information_id: string | null;
  instruction_id: string | null;
  end_to_end_id: string | null;
  uetr: string | null;
}

/** Something unusual that does not stop the import. */
interface WarningRecord {
  record: "warning";
  line: number;
  element: string;
  message: string;
}

export type BankRecord =
  | MessageRecord
  | StatementRecord
  | OtherStatementRecord
  | StatementEndRecord
  | EntryRecord
  | DetailRecord
  | StatusRecord
  | WarningRecord;
