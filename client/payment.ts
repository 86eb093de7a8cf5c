/** A payment as the API shows it (contract §2). */

import type { DeclineCode } from "./error_codes.ts";
import type { MaskedIban, Metadata, Person, Wallet } from "./values.ts";

/** Status of a payment. */
export type PaymentStatus =
  | "pending"
  | "requires_action"
  | "processing"
  | "completed"
  | "declined"
  | "failed"
  | "cancelled"
  | "partially_refunded"
  | "refunded"
  | "chargeback";

/** How a payment is made. */
export type MethodKind = "card" | "sepa" | "swift" | "stablecoin";

/** How a payment is made, in the words of the other variant. */
export type Capability = "card_payment" | "sepa_payment" | "swift_payment" | "stablecoin_payment";

/** Why a rail failed after the payment or transfer was accepted. */
export type FailureCode = "bank_return" | "onchain_reverted" | "processing_failed";

/** The instrument as the API shows it. */
export type PaymentMethod =
  | { type: "card"; card: { brand: string; last4: string; exp_month: number; exp_year: number } }
  | { type: "sepa" | "swift"; iban: MaskedIban }
  | { type: "stablecoin"; wallet: Wallet };

/** A payment. Times are RFC 3339 in UTC. */
export interface Payment {
  /** `pay_…` */
  id: string;
  object: "payment";
  status: PaymentStatus;
  /** Minor units of the currency. */
  amount: number;
  /** The same as `amount`. */
  amount_minor: number;
  currency: string;
  /** Minor units that were given back. */
  amount_refunded: number;
  capability: Capability;
  method_kind: MethodKind;
  method: PaymentMethod | null;
  customer: Person | null;
  /** The same as `customer`. */
  payer: Person | null;
  description: string | null;
  reference: string | null;
  metadata: Metadata;
  /** What the payer has to do next: 3-D Secure. */
  next_action: { type: "authenticate"; url: string } | null;
  /** Why it was declined or failed. */
  failure_code: DeclineCode | FailureCode | null;
  failure_message: string | null;
  /** A bank's reason for sending money back, for example `R01`. */
  return_code: string | null;
  livemode: boolean;
  /** Counts the events of this payment. */
  sequence: number;
  created_at: string;
  updated_at: string;
  completed_at: string | null;
  cancelled_at: string | null;
}
