/** An account at a bank, and orders that keep all rules. Tests break one rule at a time. */

import type {
  CollectionOrder,
  OwnBankAccount,
  PayoutOrder,
  PostalAddress,
} from "../../../shared/core/bank_order.ts";

/** Returns the id of a kind with this number. */
export function bankCaseId(prefix: string, number: number): string {
  return `${prefix}_01k8zq3n5v8x1y2z3a4b${String(number).padStart(6, "0")}`;
}

export const OWN_ACCOUNT: OwnBankAccount = {
  name: "Müller & Söhne GmbH",
  iban: "DE89370400440532013000",
  bic: "COBADEFFXXX",
  address: { line1: null, line2: null, city: "Köln", postal_code: "50667", country: "DE" },
  currency: "EUR",
  creditor_identifier: "DE98ZZZ09999999999",
  cut_off: "12:00",
};

export const LONDON: PostalAddress = {
  line1: "1 High Street",
  line2: "Flat 2",
  city: "London",
  postal_code: "EC1A 1BB",
  country: "GB",
};

export const SEPA_PAYOUT: PayoutOrder = {
  id: bankCaseId("tr", 1),
  rail: "sepa",
  amount_minor: 1999,
  currency: "EUR",
  payee: { name: "Jürgen Groß", iban: "FR1420041010050500013M02606", bic: null, address: null },
  remittance: { text: "Order 12 – thanks" },
  speed: "standard",
  charges: "SLEV",
  uetr: null,
  execute_on: "2026-11-27",
};

export const SWIFT_PAYOUT: PayoutOrder = {
  ...SEPA_PAYOUT,
  id: bankCaseId("tr", 9),
  rail: "swift",
  payee: { name: "Acme Ltd", iban: "GB82WEST12345698765432", bic: null, address: LONDON },
  charges: "SHAR",
  uetr: "eb6305c9-1f7f-49de-aed0-16487c27b42d",
};

export const COLLECTION: CollectionOrder = {
  id: bankCaseId("pay", 1),
  amount_minor: 5000,
  currency: "EUR",
  payer: { name: "Zoë Łukasz", iban: "NL91ABNA0417164300", bic: "ABNANL2A", address: null },
  remittance: { reference: "RF18539007547034" },
  mandate: { id: "MND-1", signed_on: "2026-01-02", sequence: "recurring" },
  due_on: "2026-12-11",
};
