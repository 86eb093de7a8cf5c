/** A payment as the API shows it (contract §2). */

import type { MaskedIban, Metadata, Person, Wallet } from "./values.ts";
import type {
  Capability,
  DeclineCode,
  FailureCode,
  MethodKind,
  PaymentStatus,
} from "./vocabulary.ts";

/** The card, bank account or wallet, with masked numbers. */
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
  /** Minor units of the currency: 1999 is 19.99 EUR. */
  amount: number;
  /** The same as `amount`. */
  amount_minor: number;
  currency: string;
  /** Sum of the refunds in minor units. */
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
  /** With `requires_action`: the page of 3-D Secure, where the payer authenticates. */
  next_action: { type: "authenticate"; url: string } | null;
  /** The reason if the payment was declined or failed. */
  failure_code: DeclineCode | FailureCode | null;
  failure_message: string | null;
  /** The reason of the bank if it returned the money, such as `R01`. */
  return_code: string | null;
  livemode: boolean;
  /** Number of events of this payment. */
  sequence: number;
  created_at: string;
  updated_at: string;
  completed_at: string | null;
  cancelled_at: string | null;
}
