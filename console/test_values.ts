/**
 * The published test values, with the words by which a person picks one. The table of the rules
 * that they trigger is `shared/domain/providers/test_values.ts`; a test holds the two equal.
 */

import type { MethodKind, Outcome, PaymentStatus } from "../client/mod.ts";

/** A value to pick. */
export interface TestValue {
  value: string;
  name: string;
  /** What a payment with it becomes; null when none is made. */
  result: PaymentStatus | null;
}

/** Cards; any future expiry, any CVC. */
export const CARDS: readonly TestValue[] = [
  { value: "4242 4242 4242 4242", name: "Approved", result: "completed" },
  { value: "4000 0025 0000 3155", name: "3-D Secure", result: "requires_action" },
  { value: "4000 0000 0000 0002", name: "Declined by the issuer", result: "declined" },
  { value: "4000 0000 0000 9995", name: "Insufficient funds", result: "declined" },
  { value: "4100 0000 0000 0019", name: "Fraud or AML block", result: "declined" },
  { value: "4000 0000 0000 0069", name: "Expired card", result: null },
  { value: "4000 0000 0000 0259", name: "For a chargeback", result: "completed" },
  { value: "5555 5555 5555 4444", name: "Mastercard", result: "completed" },
  { value: "5200 8282 8282 8210", name: "Mastercard debit", result: "completed" },
  { value: "3782 822463 10005", name: "American Express", result: "completed" },
  { value: "6011 1111 1111 1117", name: "Discover", result: "completed" },
];

/** Accounts, each with its rail. */
export const IBANS: readonly (TestValue & { rail: "sepa" | "swift" })[] = [
  {
    value: "DE89 3704 0044 0532 0130 00",
    name: "SEPA, approved",
    result: "completed",
    rail: "sepa",
  },
  { value: "DE00 0000 0000 0000 0000 99", name: "SEPA return R01", result: "failed", rail: "sepa" },
  {
    value: "GB82 WEST 1234 5698 7654 32",
    name: "SWIFT, approved",
    result: "completed",
    rail: "swift",
  },
];

/** Wallets, on any network. */
export const WALLETS: readonly TestValue[] = [
  {
    value: "0x000000000000000000000000000000000000dEaD",
    name: "Approved",
    result: "completed",
  },
  { value: "0x0000000000000000000000000000000000000BAD", name: "Reverted", result: "failed" },
];

/** Results that need no instrument. */
export const OUTCOMES: readonly (TestValue & { value: Outcome })[] = [
  { value: "success", name: "Success", result: "completed" },
  { value: "pending", name: "Pending", result: "pending" },
  { value: "declined", name: "Declined", result: "declined" },
  { value: "refunded", name: "Refunded", result: "refunded" },
  { value: "chargeback", name: "Chargeback", result: "chargeback" },
];

/** Rails and how they are named. */
export const METHOD_KINDS: readonly (readonly [MethodKind, string])[] = [
  ["card", "Card"],
  ["sepa", "SEPA"],
  ["swift", "SWIFT"],
  ["stablecoin", "Stablecoin"],
];
