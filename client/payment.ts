/** A payment as the API shows it (contract §2). */

import type { Mandate, MaskedIban, Metadata, Person, Wallet } from "./values.ts";
import type {
  Capability,
  CaptureMethod,
  DeclineAdvice,
  DeclineCode,
  FailureCode,
  MethodKind,
  Network,
  PaymentStatus,
  Settlement,
  Stablecoin,
} from "./vocabulary.ts";

/** The card, bank account or wallet, with masked numbers. */
export type PaymentMethod =
  | { type: "card"; card: { brand: string; last4: string; exp_month: number; exp_year: number } }
  | {
    type: "sepa" | "swift";
    iban: MaskedIban;
    /** Null without one. */
    mandate: Mandate | null;
    /** The day on which the payment is collected under the mandate; null without one. */
    due_on: string | null;
  }
  | { type: "stablecoin"; wallet: Wallet };

/** The next step of the payer. A newer service may send a type that is not listed here. */
export type NextAction =
  /**
   * Send the payer to this page, where the bank asks for 3-D Secure, within 24 hours. With a test
   * key the page has the buttons Approve and Fail.
   */
  | { type: "authenticate"; url: string }
  /** Show the payer these bank details. The payer must give the reference. */
  | {
    type: "bank_transfer";
    iban: string;
    bic: string;
    holder_name: string;
    /** ISO 11649. */
    reference: string;
    amount_minor: number;
    currency: string;
    expires_at: string;
    /** The text of a QR code that banking apps read (EPC069-12); null unless it is in EUR. */
    epc_qr: string | null;
  }
  /** Show the payer this address, which belongs to this payment alone. */
  | {
    type: "send_stablecoin";
    network: Network;
    asset: Stablecoin;
    /** The contract of the token. In the sandbox a test token on Sepolia. */
    contract: string;
    address: string;
    amount_minor: number;
    expires_at: string;
    /** An EIP-681 link for wallets and QR codes. */
    uri: string;
  };

/** A payment. Times are RFC 3339 in UTC. */
export interface Payment {
  /** `pay_…` */
  id: string;
  object: "payment";
  status: PaymentStatus;
  /** Minor units of the currency: 1999 is 19.99 EUR. */
  amount: number;
  /** The amount in minor units again, under the name `amount_minor`. */
  amount_minor: number;
  currency: string;
  /** Sum of the completed refunds in minor units. */
  amount_refunded: number;
  /** Sum of the pending refunds in minor units. */
  amount_refunding: number;
  /** The amount that was taken: less than `amount` after a capture of a part. */
  amount_captured: number;
  /** The amount that the payer has charged back. */
  amount_disputed: number;
  /** The amount that has arrived, on rails where the payer sends; null for the others. */
  amount_received: number | null;
  capability: Capability;
  method_kind: MethodKind;
  method: PaymentMethod | null;
  customer: Person | null;
  /** The payer again, under the name `payer`. */
  payer: Person | null;
  description: string | null;
  reference: string | null;
  metadata: Metadata;
  next_action: NextAction | null;
  /** The page of your shop to which the payer comes back after `next_action`. */
  return_url: string | null;
  capture: CaptureMethod;
  /** With `authorized`: the time at which the service cancels the payment if it is not captured. */
  capture_before: string | null;
  /** As in the create; null with a live key. */
  settlement: Settlement | null;
  /** The reason if the payment was declined or failed. */
  failure_code: DeclineCode | FailureCode | null;
  failure_message: string | null;
  /** With `declined`: the next step that helps. A newer service may send another value. */
  advice: DeclineAdvice | null;
  /** The reason of the bank if it returned the money, such as `AC04`. */
  return_code: string | null;
  livemode: boolean;
  /** Number of events of this payment. */
  sequence: number;
  created_at: string;
  updated_at: string;
  completed_at: string | null;
  cancelled_at: string | null;
}
