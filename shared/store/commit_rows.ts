/**
 * The rows that one decided change writes, in the database's own names: the parameters of
 * `pay.commit`. The domain builds them, and the store sends them unread.
 */

import type { EventType } from "../schema/event_type.ts";
import type { MethodKind, PaymentStatus } from "../schema/payment.ts";
import type { TransferStatus } from "../schema/transfer.ts";
import type { LedgerAccount } from "../schema/ledger.ts";

/** An HTTP answer as bytes to be: what is sent, kept and replayed. */
export interface Answer {
  status: number;
  /** JSON text. */
  body: string;
}

/** A row of `pay.payments`. Times are RFC 3339, amounts minor units of `currency`. */
export interface PaymentRow {
  id: string;
  status: PaymentStatus;
  amount_minor: number;
  amount_refunded: number;
  currency: string;
  method_kind: MethodKind;
  reference: string | null;
  sequence: number;
  created_at: string;
  updated_at: string;
  body: string;
}

/** A row of `pay.transfers`. */
export interface TransferRow {
  id: string;
  status: TransferStatus;
  amount_minor: number;
  currency: string;
  sequence: number;
  created_at: string;
  updated_at: string;
  body: string;
}

/** A row of `pay.refunds`. */
interface RefundRow {
  id: string;
  payment_id: string;
  amount_minor: number;
  currency: string;
  created_at: string;
  body: string;
}

/** Kinds of ledger transactions. */
export type MovementKind =
  | "capture"
  | "capture_reversal"
  | "refund"
  | "chargeback"
  | "transfer"
  | "transfer_completed"
  | "transfer_reversed";

/**
 * A row of `pay.ledger_movements`: an amount moves from one account to another, as one leg of a ledger
 * transaction. The API shows it as two entries.
 */
interface MovementRow {
  transaction_id: string;
  /** Numbers the legs of a transaction: 0, 1, 2 … */
  leg: number;
  kind: MovementKind;
  subject_id: string;
  refund_id: string | null;
  debit_account: LedgerAccount;
  credit_account: LedgerAccount;
  amount_minor: number;
  currency: string;
  created_at: string;
}

/** A row of `pay.events`. */
export interface EventRow {
  id: string;
  type: EventType;
  subject_id: string;
  sequence: number;
  created_at: string;
  /** The ids of its deliveries but for the last character. */
  delivery_id: string;
  body: string;
}

/** A decided change: written whole in one transaction, or not at all. */
export interface Change {
  /** The answer to the request; kept under its idempotency key. */
  answer: Answer;
  /** The payment or transfer as it was when this was decided; null for a create. */
  expects: { id: string; sequence: number } | null;
  /** The payment as it is to be; null when the change is of none. */
  payment: PaymentRow | null;
  /** The transfer as it is to be; null when the change is of none. */
  transfer: TransferRow | null;
  refunds: RefundRow[];
  ledger: MovementRow[];
  events: EventRow[];
}
