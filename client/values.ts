/**
 * Values that several resources share, as on the wire (contract §2).
 */

import type { Network, Stablecoin } from "./vocabulary.ts";

/** Your own data on a resource: at most 50 texts. */
export type Metadata = Record<string, string>;

/** Who pays. */
export interface Person {
  email: string;
  name?: string | undefined;
}

/** A bank account. */
export interface IbanInput {
  /** Spaces do not matter. */
  iban: string;
  /** 8 or 11 characters. */
  bic?: string | undefined;
  holder_name?: string | undefined;
}

/** A wallet. */
export interface WalletInput {
  address: string;
  network?: Network | undefined;
  asset?: Stablecoin | undefined;
}

/** What is shown of a bank account. */
export interface MaskedIban {
  country: string;
  last4: string;
}

/** A wallet as it is shown. */
export interface Wallet {
  address: string;
  network: Network;
  asset: Stablecoin;
  tx_hash: string | null;
}

/** An amount under one of its two names, or under both if they are equal. */
export type AmountInput =
  | { amount: number; amount_minor?: number | undefined }
  | { amount_minor: number; amount?: number | undefined };
