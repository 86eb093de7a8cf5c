/**
 * The schemes by which banks move money, and the rules in which they differ. This module imports
 * nothing, so that the bundle of the console stays small. Sources: as in bank_order.ts.
 */

export const BANK_RAILS = ["sepa", "swift"] as const;

export type BankRail = typeof BANK_RAILS[number];

/**
 * Who pays what the banks charge for a payment by SWIFT: payer and payee each their own bank, the
 * payer all of it, or the payee all of it.
 */
export const SWIFT_CHARGES = ["SHAR", "DEBT", "CRED"] as const;

/** Largest amount of a SEPA payment, in cents. Instant ones have the same since October 2025. */
export const MAX_SEPA_AMOUNT = 99_999_999_999;

interface BankScheme {
  /** As people write it. */
  name: string;
  /** The only currency; null: any. */
  currency: string | null;
  /** In minor units of `currency`; null: the scheme has no limit. */
  amount_max: number | null;
  /** Most characters of a name, after its conversion to the characters of SEPA. */
  name_max: number;
  has_instant: boolean;
  /** Who pays the charges, by code. SEPA has SLEV only: each side pays its own bank. */
  charges: readonly ("SLEV" | typeof SWIFT_CHARGES[number])[];
  /** Whether a payout has a unique end-to-end transaction reference. */
  has_uetr: boolean;
  /** Whether only banks of SEPA countries take part. */
  is_sepa_only: boolean;
}

export const BANK_SCHEMES: Readonly<Record<BankRail, BankScheme>> = {
  sepa: {
    name: "SEPA",
    currency: "EUR",
    amount_max: MAX_SEPA_AMOUNT,
    name_max: 70,
    has_instant: true,
    charges: ["SLEV"],
    has_uetr: false,
    is_sepa_only: true,
  },
  swift: {
    name: "SWIFT",
    currency: null,
    amount_max: null,
    name_max: 140,
    has_instant: false,
    charges: SWIFT_CHARGES,
    has_uetr: true,
    is_sepa_only: false,
  },
};

/** Returns the scheme by which banks move a currency, unless the account is outside of it. */
export function railOfCurrency(currency: string): BankRail {
  return currency === BANK_SCHEMES.sepa.currency ? "sepa" : "swift";
}
