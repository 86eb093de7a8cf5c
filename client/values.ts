/**
 * Values that several resources share, with the fields of the API (contract §2).
 */

import type { MandateSequence, Network, Stablecoin } from "./vocabulary.ts";

/** Your own data on a resource: at most 50 names of 40 characters, with values of 500. */
export type Metadata = Record<string, string>;

/** The payer. */
export interface Person {
  /** Your own id of the customer, at most 64 characters. Payments can be listed by it. */
  id?: string | undefined;
  email: string;
  name?: string | undefined;
}

/** A bank account. */
export interface IbanInput {
  /** Can contain spaces. */
  iban: string;
  /** 8 or 11 characters. */
  bic?: string | undefined;
  holder_name?: string | undefined;
  /** A collection from an IBAN from outside the EEA needs it. */
  address?: PostalAddress | undefined;
}

/** A wallet. */
export interface WalletInput {
  address: string;
  network?: Network | undefined;
  asset?: Stablecoin | undefined;
}

/** The postal address of a payer or payee. */
export interface PostalAddress {
  /** Street and number, at most 70 characters. */
  line1?: string | undefined;
  line2?: string | undefined;
  city: string;
  postal_code?: string | undefined;
  /** Country code of two letters. */
  country: string;
}

/** The mandate of a payer, under which payments by SEPA are collected. */
export interface Mandate {
  /** Your own reference of the mandate, at most 35 characters. */
  id: string;
  /** When the payer signed: a date such as `2026-01-31`, or an RFC 3339 time. */
  signed_at: string;
  sequence: MandateSequence;
}

/** The part of an IBAN that the API shows. */
export interface MaskedIban {
  country: string;
  last4: string;
}

/** The result of a deletion of bank details. */
export interface DeletedBankDetails {
  /** Id of the payment or transfer. */
  id: string;
  object: "bank_details";
  deleted: true;
}

/** A wallet of a payment or transfer. */
export interface Wallet {
  address: string;
  network: Network;
  asset: Stablecoin;
  /** Hash of the transaction on the network, if there is one. */
  tx_hash: string | null;
}

/** An amount in minor units, under either of its names. If you send both, they must be equal. */
export type AmountInput =
  | { amount: number; amount_minor?: number | undefined }
  | { amount_minor: number; amount?: number | undefined };
