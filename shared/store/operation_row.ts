/** The row of an operation of a provider, from its reservation to its result. */

import type { Sealed } from "../core/vault.ts";
import type { InstrumentUsage, MethodKind } from "../schema/payment_body.ts";
import type { InstrumentProvider } from "./instrument_provider.ts";
import type { SandboxSettings } from "./sandbox_settings.ts";

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
  | "dispute_evidence"
  | "dispute_accept"
  /** Loses a dispute that is open when its time is over. In the sandbox only. */
  | "dispute_expire"
  /** Returns a collection that has completed. In the sandbox only. */
  | "return"
  /** Removes an instrument at its provider. */
  | "detach";

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

/** The rest of an operation's request, which only connectors read. Never a card number. */
interface OperationRequest {
  /** The provider's reference of an instrument; null if the operation needs none. */
  token: string | null;
  /** Of a payment that saves its card: how, and the merchant's own id of its customer. */
  save?: { usage: InstrumentUsage; customer_id: string };
  /** The account and the customer at the provider of the saved card whose token it is. */
  instrument?: Omit<InstrumentProvider, "token">;
  /** True: a bank has the address of the payer of a collection. */
  has_address?: true;
  /** Where the payer comes back to the page of checkouts; absent: `return_url` of the payment. */
  return_url?: string;
  dispute?: DisputeRequest;
  /** The result that the sandbox's provider replies later; absent: that of its instrument. */
  simulated?: Readonly<Record<string, string>>;
}

/** A row of `pay.provider_operations`: an operation, which is committed before it is sent. */
export interface OperationRow {
  /** `pc_…`, the provider's idempotency key; empty until the operation is reserved. */
  id: string;
  /** Empty until the operation is reserved. */
  environment_id: string;
  op: ProviderOp;
  /** The payment or transfer. */
  subject_id: string;
  /** The refund of `op: "refund"`. */
  refund_id: string | null;
  /** The amount to authorize, capture, refund or transfer, in minor units of `currency`. */
  amount_minor: number;
  /** Upper case. */
  currency: string;
  request: OperationRequest;
  state: "pending" | "settled" | "operator";
  /** Number of leases, with this one; 0: the provider replies within the request. */
  attempts: number;
  /** The time of the reservation, RFC 3339. */
  created_at: string;
  /** The time of the first attempt, RFC 3339; null: none yet. */
  first_sent_at: string | null;
  /** False: the provider would only replay its first response, so the service syncs instead. */
  may_repeat: boolean;
  /** The provider's id of the payment; null until the provider has responded. */
  provider_reference: string | null;
  request_id: string;
  /** The place in a trace from which the request came (W3C Trace Context); null: none. */
  traceparent: string | null;
  /** True: a decline returns 402. */
  decline_is_error: boolean;
  /** When it is due by the clock of its environment, RFC 3339; null: it does not wait. */
  due_at: string | null;
  /** The settings of the sandbox; null: it has none. */
  settings: SandboxSettings | null;
  /** The value that the database has reserved for the connector; null: it needs none. */
  reserved: unknown;
}

export interface NewOperationRow extends
  Pick<
    OperationRow,
    | "id"
    | "op"
    | "subject_id"
    | "refund_id"
    | "amount_minor"
    | "currency"
    | "request"
    | "decline_is_error"
  > {
  /** Chooses the account of a new payment or transfer. */
  method_kind: MethodKind;
  /** How long the request holds the operation while it sends it. The worker takes it over then. */
  lease_ms: number;
  /** The worker sends the operation after this time; null: the request sends it at once. */
  delay_ms: number | null;
  /** The end of the delay, RFC 3339. Absent: the delay begins with the commit, which is later. */
  due?: string;
  /**
   * The provider's id of the payment, if the provider has responded already, as the simulated one
   * of the sandbox does. Then the operation is settled, and nobody sends it.
   */
  provider_reference: string | null;
  /** Absent: none. */
  traceparent?: string;
  /** An order to a bank, with its sealed details if the request has some. Absent: it is none. */
  bank_order?: Partial<Sealed>;
}

/** The result of an attempt. A member that is absent stays as it is. The lease ends. */
export interface OperationResult {
  /** `operator`: the service gives up, and the operator decides. */
  state?: OperationRow["state"];
  /** RFC 3339. Of a pending operation. */
  next_attempt_at?: string;
  provider_reference?: string | null;
  /** For the operator. */
  last_reply?: string;
  may_repeat?: boolean;
  /** Only the operator can end the wait. Absent: false. */
  needs_operator?: boolean;
}
