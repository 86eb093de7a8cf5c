/** The parts of a call to a provider that changes and records share. */

/** Operations that the service asks of a provider. */
export type ProviderOp =
  | "authorize"
  | "capture"
  | "cancel"
  | "refund"
  | "transfer"
  /** Ends an authorization after 7 days. In the sandbox only: a live provider does it by itself. */
  | "expire"
  /** Ends a payment whose payer has done nothing for 24 hours. */
  | "abandon";

/** The rest of a call's request, which only connectors read. Never a card number. */
export interface CallRequest {
  /** The provider's reference of an instrument; null if the operation needs none. */
  token: string | null;
  /** Where the payer comes back after the next action. */
  return_url: string | null;
}
