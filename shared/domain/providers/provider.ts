/**
 * What stands between a payment and the outside world. The sandbox is the first implementation and
 * a pure function; a live provider does I/O between the claim of the request and its record.
 */

import { ApiError, type DeclineCode } from "../../core/errors.ts";
import type { Outcome, Payment } from "../../schema/payment.ts";
import type { Instrument } from "./instrument.ts";

/** What a provider is asked to authorize. */
export interface AuthorizationRequest {
  amount_minor: number;
  /** Upper case. */
  currency: string;
  instrument: Instrument;
  /** A result that overrides the instrument; test keys only. */
  outcome: Outcome | null;
  /** Whether an asynchronous rail is to wait for an advance; test keys only. */
  manual: boolean;
}

/** The money has come in. It can go back at once: in the sandbox an outcome can force that. */
export interface Capture {
  result: "completed" | "refunded" | "chargeback";
  /** Of a stablecoin payment. */
  tx_hash?: string;
}

/** What a provider answers. */
export type Authorization =
  | Capture
  | { result: "pending" }
  | { result: "requires_action" }
  | { result: "declined"; code: DeclineCode }
  | { result: "failed"; code: "bank_return" | "onchain_reverted"; return_code?: string };

/** What a provider is asked to pay out. */
export type TransferRequest = Omit<AuthorizationRequest, "outcome">;

/** What a provider answers to a transfer. */
export type TransferResult = Extract<Authorization, { result: "failed" | "pending" }> | {
  result: "completed";
};

/** A payment provider. Every call throws `ApiError` when it cannot be made. */
export interface Provider {
  authorize(request: AuthorizationRequest): Authorization | Promise<Authorization>;
  cancel(payment: Payment): void | Promise<void>;
  refund(payment: Payment, amount_minor: number): void | Promise<void>;
  transfer(request: TransferRequest): TransferResult | Promise<TransferResult>;
}

/** The live provider until one is configured: refuses everything, so nothing is stored. */
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
