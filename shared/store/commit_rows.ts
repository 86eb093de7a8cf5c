/**
 * The rows of one decided change, with the names of the database's columns: the members of
 * the document of `pay.commit`. The domain builds them, and the store passes them on.
 */

import type { Sealed } from "../core/vault.ts";
import type {
  DisputeStatus,
  InstrumentStatus,
  PaymentStatus,
  RefundStatus,
  TransferStatus,
} from "../schema/statuses.ts";
import type { EventType } from "../schema/event_type.ts";
import type { InstrumentEndReason } from "../schema/instrument.ts";
import type { InstrumentUsage, MandateSequence, MethodKind } from "../schema/payment_body.ts";
import type { LedgerAccount } from "../schema/list.ts";
import type { InstrumentProvider } from "./instrument_provider.ts";
import type { NewOperationRow } from "./operation_row.ts";

/** An HTTP response as text, which the service sends, stores and replays unchanged. */
export interface StoredResponse {
  status: number;
  /** JSON text. */
  body: string;
}

/** A row of `pay.payments`. Times are RFC 3339, amounts are minor units of `currency`. */
export interface PaymentRow {
  id: string;
  status: PaymentStatus;
  amount_minor: number;
  amount_refunded: number;
  /** Sum of the pending refunds. */
  amount_refunding: number;
  /** The authorized amount that the capture has released. */
  amount_released: number;
  /** The amount that the payer has charged back. */
  amount_disputed: number;
  currency: string;
  method_kind: MethodKind;
  reference: string | null;
  /** Absent without one: most payments have none. */
  customer_id?: string;
  instrument_id?: string;
  checkout_id?: string;
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
  status: RefundStatus;
  amount_minor: number;
  currency: string;
  created_at: string;
  body: string;
  /** True: it is new, and needs the bank details of the payer. */
  is_to_payer?: true;
}

/** A row of `pay.disputes`. */
interface DisputeRow {
  id: string;
  payment_id: string;
  status: DisputeStatus;
  amount_minor: number;
  currency: string;
  /** The provider's id of a live dispute. Null in a sandbox, and in a change: it stays. */
  provider_reference: string | null;
  created_at: string;
  body: string;
}

/** An act of a change on an instrument, by `act` (`pay_internal.write_instruments`). */
export type InstrumentRow =
  & {
    /** The time of the change, RFC 3339. */
    at: string;
    /** The request, for the event of an end. Absent: a worker makes the change. */
    request_id?: string;
    idempotency_key?: string;
  }
  & (SavedInstrumentRow | InstrumentUse | InstrumentResult | InstrumentRenewal | InstrumentEnd);

/**
 * A new instrument: `save` keeps it. `mandate` is a payment with an IBAN and the id of its mandate,
 * which makes an instrument if the mandate is new.
 */
interface SavedInstrumentRow {
  act: "save" | "mandate";
  id: string;
  status: InstrumentStatus;
  customer_id: string | null;
  email: string | null;
  name: string | null;
  method_kind: MethodKind;
  /** The masked instrument as JSON text; null: the provider has not told it yet. */
  method: string | null;
  usage: InstrumentUsage;
  payment_id: string;
  /** True: the payment takes money, so that it is a use. */
  is_use: boolean;
  mandate_id?: string;
  mandate_sequence?: MandateSequence;
  signed_at?: string;
  /** Fingerprints of the IBAN, the one to store first. */
  ibans?: readonly string[];
  /** Of a live one by SEPA that is kept. */
  bank_details?: Sealed;
  test_behaviour?: string;
  provider?: InstrumentProvider;
  /** Absent: it does not end with this payment. */
  reason?: "used_up";
}

/** A payment by an instrument, which must still have this sequence. */
interface InstrumentUse {
  act: "use";
  id: string;
  sequence: number;
  /** As in `SavedInstrumentRow`. Absent: the fingerprint stays. */
  ibans?: readonly string[];
}

/** The result of the payment that has saved an instrument, which is `pending`. */
interface InstrumentResult {
  act: "result";
  id: string;
  status: InstrumentStatus;
  method: string | null;
  provider?: InstrumentProvider;
}

/** The masked card as JSON text, as its network has renewed it. */
interface InstrumentRenewal {
  act: "renew";
  id: string;
  method: string;
}

interface InstrumentEnd {
  act: "end";
  id?: string;
  mandate_id?: string;
  reason: InstrumentEndReason;
}

/** The effect of a payment's change on its checkout (`pay_internal.write_checkouts`). */
export interface AttemptRow {
  id: string;
  /** The time of the change, RFC 3339. */
  at: string;
  payment_id: string;
  /** Of a new attempt: the revision of the checkout on which it is based. */
  revision?: number;
  is_attempt?: true;
  /** The payment is successful. It counts the first time. */
  is_paid?: true;
  is_declined?: true;
}

/** Kinds of ledger transactions. */
export type MovementKind =
  | "capture"
  | "capture_reversal"
  | "refund"
  | "refund_reversal"
  | "chargeback"
  | "chargeback_reversal"
  | "fee"
  | "fee_reversal"
  | "settlement"
  | "settlement_reversal"
  | "unmatched"
  | "unmatched_reversal"
  | "reserve"
  | "reserve_reversal"
  | "transfer"
  | "transfer_completed"
  | "transfer_reversed"
  | "transfer_returned";

/**
 * A row of `pay.ledger_movements`: an amount that moves from one account to another, as one leg of
 * a ledger transaction. The API shows it as two entries (ADR 0005).
 */
export interface MovementRow {
  transaction_id: string;
  /** Number of the leg in its transaction, from 0. */
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
  /** The ids of its deliveries without the last character, which the database adds. */
  delivery_id: string;
  /** The object of the event as JSON text. Absent: the payment or transfer as of the event. */
  object?: string;
  /** The splices that undo the event in the text of its payment or transfer. Absent: none. */
  before?: string[];
  /** Absent: a worker made the event. */
  request_id?: string;
  /** Absent: none. */
  idempotency_key?: string;
  /** The place in a trace from which the event came (W3C Trace Context). Absent: none. */
  traceparent?: string;
}

/** A payment or transfer as it was loaded. */
export interface LoadedSubject {
  id: string;
  sequence: number;
  /** The personal data of its customer were erased. */
  is_erased?: true;
}

/** A decided change, which the database writes whole in one transaction or not at all. */
export interface Change {
  /** The response to the request, which is stored under its idempotency key. */
  response: StoredResponse;
  /** The payment or transfer on which the decision is based; null for a create. */
  expects: LoadedSubject | null;
  /** The new state of the payment; null if the change concerns no payment. */
  payment: PaymentRow | null;
  /** The new state of the transfer; null if the change concerns no transfer. */
  transfer: TransferRow | null;
  /** New refunds, and refunds whose status has changed. */
  refunds: RefundRow[];
  disputes: DisputeRow[];
  /** Absent: none. */
  instruments?: InstrumentRow[];
  /** Absent: the payment belongs to none, or the change means nothing to it. */
  checkouts?: AttemptRow[];
  ledger: MovementRow[];
  events: EventRow[];
  /**
   * At most one that the request sends: then its idempotency key is claimed with the status 102.
   * The others have a delay.
   */
  operations: NewOperationRow[];
  /** The declared fault that has decided the change, in a sandbox. The commit counts it. */
  fault_id?: string;
}

/** The rows that `pay.commit` and `pay.record` write. */
export type ChangedRows = Omit<Change, "response" | "expects" | "fault_id">;
