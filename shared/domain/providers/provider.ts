/**
 * The interface of payment providers. The sandbox provider is the only one that moves money so far,
 * and it is pure. A live provider will do I/O before the change is committed.
 */

import { ApiError, type DeclineCode } from "../../core/errors.ts";
import type { Outcome, Payment } from "../../schema/payment.ts";
import type { Instrument } from "./instrument.ts";

/** A request to authorize a payment. */
export interface AuthorizationRequest {
  amount_minor: number;
  /** Upper case. */
  currency: string;
  instrument: Instrument;
  /** A result that overrides the instrument. Test keys only. */
  outcome: Outcome | null;
  /** True: an asynchronous rail waits for an advance. Test keys only. */
  manual: boolean;
}

/** The money has come in. It can go back at once: in the sandbox an outcome can force that. */
export interface Capture {
  result: "completed" | "refunded" | "chargeback";
  /** Of a stablecoin payment. */
  tx_hash?: string;
}

/** A provider's answer to an authorization. */
export type Authorization =
  | Capture
  | { result: "pending" }
  | { result: "requires_action" }
  | { result: "declined"; code: DeclineCode }
  | { result: "failed"; code: "bank_return" | "onchain_reverted"; return_code?: string };

/** A request to pay out money. */
export type TransferRequest = Omit<AuthorizationRequest, "outcome">;

/** A provider's answer to a transfer. */
export type TransferResult = Extract<Authorization, { result: "failed" | "pending" }> | {
  result: "completed";
};

/** A payment provider. Each method throws `ApiError` if the provider cannot run it. */
export interface Provider {
  authorize(request: AuthorizationRequest): Authorization | Promise<Authorization>;
  cancel(payment: Payment): void | Promise<void>;
  refund(payment: Payment, amount_minor: number): void | Promise<void>;
  transfer(request: TransferRequest): TransferResult | Promise<TransferResult>;
}

/** The provider of live keys until one is configured. It refuses every call with 503. */
export const unconfiguredProvider: Provider = {
  authorize: refuse,
  cancel: refuse,
  refund: refuse,
  transfer: refuse,
};

function refuse(): never {
  throw new ApiError(
    "provider_not_configured",
    "No live payment provider is configured: use a test key",
  );
}
