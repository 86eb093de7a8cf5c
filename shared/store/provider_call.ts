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
  | "abandon"
  /** Sends the evidence of a dispute. */
  | "dispute_evidence"
  /** Gives up a dispute. */
  | "dispute_accept"
  /** Loses a dispute that is open when its time is over. In the sandbox only. */
  | "dispute_expire";

/** The request of a call about a dispute. */
export interface DisputeRequest {
  /** `dp_…` */
  id: string;
  /** The provider's id of the dispute; null in a sandbox. */
  reference: string | null;
  /** The evidence of `dispute_evidence`. */
  text: string | null;
  /** False: the evidence is only saved. */
  submit: boolean;
}

/** The rest of a call's request, which only connectors read. Never a card number. */
export interface CallRequest {
  /** The provider's reference of an instrument; null if the operation needs none. */
  token: string | null;
  /** Where the payer comes back after the next action. */
  return_url: string | null;
  /** For an operation on a dispute. */
  dispute?: DisputeRequest;
  /** The result that the sandbox's provider replies later; absent: that of its instrument. */
  simulated?: Readonly<Record<string, string>>;
}
