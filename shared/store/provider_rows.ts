/**
 * The rows of the live flow: operations of providers, the events that providers report, and the
 * records of their results. Connectors make provider events, the domain decides records, and
 * provider_store.ts passes them on.
 */

import type { DeclineAdvice, DeclineCode } from "../core/errors.ts";
import type { Sealed } from "../core/vault.ts";
import type { PayeeCheck } from "../schema/bank_account.ts";
import type { DisputeReason, PaymentStatus } from "../schema/statuses.ts";
import type { FailureCode, NextAction, ShownCard } from "../schema/payment.ts";
import type { ChangedRows, LoadedSubject, StoredResponse } from "./commit_rows.ts";
import type { InstrumentProvider } from "./instrument_provider.ts";
import type { OperationResult, OperationRow, ProviderOp } from "./operation_row.ts";

/** A status of a payment, unless providers report it in other words, or one of the other states. */
export type ProviderEventState =
  | Exclude<
    PaymentStatus,
    "processing" | "completed" | "partially_refunded" | "refunded" | "chargeback"
  >
  /** The money has come, but can still be undone. */
  | "received"
  | "succeeded"
  | "returned"
  | "disputed"
  | "dispute_under_review"
  | "dispute_won"
  | "dispute_lost"
  | "reorged";

/**
 * The subject of an event: an operation, the verification of a payee, a dispute, a fee, or money
 * that belongs to the account and not to a payment. The last is a payout to the merchant's bank (or
 * money from there), a fee of the account, a reserve of the provider, or an adjustment, which is
 * everything else. If it `succeeded`, it took money from the balance; if it `returned`, it brought
 * money to it.
 */
export type ProviderEventOp =
  | (ProviderOp | "payee_check" | "dispute" | "fee" | AccountOp)
  /** The network of a saved card has given it another expiry or brand. */
  | "renewal";
export type AccountOp = "payout" | "account_fee" | "reserve" | "adjustment";

/** A report of a provider: something has happened. */
export interface ProviderEvent {
  account_id: string;
  /** Object and state at the provider, such as `pi_1:succeeded`: unique in the account. */
  reference: string;
  /** The object, such as `pi_1`: the events of one refund or dispute have the same. */
  object_id: string;
  op: ProviderEventOp;
  state: ProviderEventState;
  /** Our payment or transfer, if the provider's object names it. */
  subject_id: string | null;
  /** Our refund, if the provider's object names it. */
  refund_id: string | null;
  /** The provider's id of the payment or transfer. It finds the subject if `subject_id` is null. */
  provider_reference: string | null;
  amount_minor: number;
  /** Upper case. */
  currency: string;
  /** The time at the provider, RFC 3339. */
  at: string;
  /** False: the provider's object belongs to a test mode and moves no money. */
  livemode: boolean;
  decline_code?: DeclineCode;
  /** The provider's own advice after a decline. Absent: the usual one of the code. */
  advice?: DeclineAdvice;
  failure_code?: FailureCode;
  /** The bank's code of a return, such as `R01`. */
  return_code?: string;
  /**
   * The reason in words: why an adjustment needs the operator, or of a failure, for the merchant.
   * Absent: its amount and the end of its reference tell, or the code.
   */
  reason?: string;
  /** The next step of the payer, for `requires_action`. */
  next_action?: NextAction;
  /** The dispute, for `disputed` and for its evidence. */
  dispute?: DisputeReport;
  /** The operator has reported it, and not the provider. */
  source?: "operator";
  /** `amount_received` includes the amount already. Absent: the events of the transfer tell. */
  is_counted?: true;
  /** The operation that the provider needs later, if nobody acts before. */
  later?: { op: ProviderOp; delay_ms: number };
  card?: CardReport;
  chain?: ChainReport;
  bank?: BankReport;
}

/** The part of an event that only a provider of cards reports. */
export interface CardReport {
  shown?: ShownCard;
  /** The end of the authorization, for `authorized`. RFC 3339; absent: the provider names none. */
  capture_before?: string;
  /** The references of a card that the provider keeps. */
  kept?: InstrumentProvider;
  /** True: a sync shows more about the payment, such as its card and its fee. */
  is_partial?: true;
}

/** The part of an event that only a chain reports: a transfer in a transaction. */
interface ChainReport {
  tx_hash: string;
  /** The place of the transfer; absent: the event is about the whole transaction. */
  log_index?: number;
  /** The block, unless the transfer is final: two blocks can have the same transfer. */
  block_hash?: string;
}

interface BankReport {
  /**
   * The part of an entry of the account that `object_id` names, its line in the file, and the
   * bank's own reference. No other event is about the same money. Absent: the event is no entry.
   */
  entry?: { part: number; line: number; bank_reference: string | null };
  /**
   * The least and the most that the bank can have taken inside of the amount, as it does with many
   * returns. Absent: nothing.
   */
  charge_minor?: readonly [least: number, most: number];
  /** What the bank tells about an entry, sealed. It is stored apart from the event. */
  sealed?: Sealed;
  /** True: the details of this entry have come, and their events book its money. */
  is_replaced?: true;
  /** True: the bank has rejected a whole file or batch, so the code is not about the payer. */
  is_whole?: true;
  /** The day on which a payment is collected under its mandate: `YYYY-MM-DD`. */
  due_on?: string;
  /** The result of the verification of the payee, for `payee_check`. */
  payee_check?: PayeeCheck;
}

export interface DisputeReport {
  reason: DisputeReason;
  /** RFC 3339; null: the provider names no time. */
  evidence_due_by: string | null;
  evidence?: { text: string; is_submitted: boolean };
}

export interface StoredProviderEvent extends ProviderEvent {
  /** The signed change of the balance at the provider that the ledger has booked for it. */
  booked_minor: number;
  /** The time at which it was first stored, RFC 3339. */
  received_at: string;
  /** True: another account here has made the object, and its events book the money. */
  is_elsewhere: boolean;
  /** True: its refund or dispute began with an event that is unmatched. Absent: it did not. */
  follows_unmatched?: boolean;
}

/** Movements of one day at the provider, in one currency. */
export interface ProviderTotal {
  /** Upper case. */
  currency: string;
  /** Sum of all balance movements in minor units, after fees; payouts count as negative. */
  net_minor: number;
}

export interface StoredAccount {
  /** `pac_…`, or `sandbox` in a test environment. */
  id: string;
  environment_id: string;
  connector: string;
  settings: Record<string, string>;
  secret_name: string | null;
  /** Names of the variables with the secrets that sign notifications, newest first. */
  notification_secret_names: string[];
}

/** The booked state of the transfers to the address of a payment by stablecoin. */
export interface DepositState {
  /** Sum of the final transfers that are applied, in minor units. */
  final_minor: number;
  /**
   * The handled events about the transfer of an event, with its block unless it is final. Those
   * that the chain has told later than the event can be handled before it.
   */
  reports: readonly {
    state: ProviderEventState;
    block_hash: string | null;
    is_later?: boolean | null;
  }[];
}

export type HandledProviderEvent = ProviderEvent & {
  /** `unmatched`: there is no such payment or transfer. Null: the worker handles it later. */
  outcome: "applied" | "ignored" | "exception" | "unmatched" | null;
  exception: string | null;
  /** The signed change of the balance at the provider that the ledger has booked after this. */
  booked_minor: number;
  /** The part of it that the ledger had booked before, for an event that was unmatched. */
  was_booked_minor: number;
};

/** The state on which the decision about a record is based. */
interface Expectation extends LoadedSubject {
  /** Sum of the final transfers of a payment by stablecoin; absent: it does not matter. */
  final_minor?: number;
  /** Number of handled events about the transfer of the first event; absent: it does not matter. */
  reports?: number;
}

/** A result to record: of an operation, of events, of both, or of a payer's challenge. */
export interface ProviderRecord {
  environment_id: string;
  /** The operation with this result; null if there is none. */
  operation_id: string | null;
  operation: OperationResult | null;
  provider_events: readonly HandledProviderEvent[];
  /**
   * The payment or transfer that changes, and its new rows; null if nothing changes. Without rows
   * it only has to be as expected. The worker sends its operations.
   */
  change: (ChangedRows & { expects: Expectation | null }) | null;
  /**
   * The response to store under the idempotency key of the operation; null: the key stays as it is.
   */
  response: StoredResponse | null;
  /** The number in `pay.sandbox_settings.counts` that counts the record; absent: none. */
  counted_as?: string;
}

export interface RecordOutcome {
  /**
   * `stale`: the subject, or the booking of an event, has changed; load and decide again. `known`:
   * the operation is settled, or an event to apply is applied already. Both have changed nothing.
   */
  outcome: "recorded" | "stale" | "known";
  /** True if the operation of the record is settled now, by this record or by another. */
  is_settled: boolean;
}

/** Work that a worker has leased. Bodies are JSON text. */
export interface ProviderWork {
  /** `operation`: send it, or sync if it may not be repeated. `totals`: read those of `day`. */
  kind: "operation" | "event" | "sync" | "poll" | "totals";
  environment_id: string;
  livemode: boolean;
  account: StoredAccount;
  /** The operation to send or to sync; for an event the newest operation of its kind, or null. */
  operation: OperationRow | null;
  event: StoredProviderEvent | null;
  /** The payment or transfer; null if there is none. */
  subject_body: string | null;
  subject_sequence: number | null;
  refund_body: string | null;
  /** The dispute that the operation or the event is about; null if there is none. */
  dispute_body: string | null;
  /** Set for an event about a transfer on a chain, else null. */
  deposit: DepositState | null;
  /** Where a poll, or the reading of totals, goes on; null: at its beginning. */
  cursor: unknown;
  /** `YYYY-MM-DD`, in UTC. */
  day: string | null;
}
