/**
 * The simulated provider of the sandbox, a pure function (interface §4, contract §2). The same
 * request always has the same result, on any machine and at any time.
 */

import { createHash } from "node:crypto";
import { canonicalJson } from "../../core/canonical_json.ts";
import type { Stablecoin } from "../../core/currency.ts";
import { invalidParameter } from "../../core/errors.ts";
import type { Network } from "../../core/wallet_address.ts";
import type {
  Authorization,
  AuthorizationRequest,
  Provider,
  TransferRequest,
  TransferResult,
} from "./provider.ts";

/** The sandbox provider. It accepts all cancels and refunds; the lifecycle has checked them. */
export const sandboxProvider: Provider = {
  authorize,
  cancel() {},
  refund() {},
  transfer,
};

function authorize(request: AuthorizationRequest): Authorization {
  const { instrument, outcome } = request;
  // An explicit outcome overrides every instrument (contract §2).
  if (outcome) return forced(request, outcome);
  if (!instrument.behaviour) return { result: "pending" };
  if (request.manual && instrument.kind !== "card") return { result: "pending" };
  switch (instrument.behaviour) {
    case "approve":
      return approved(request, "completed");
    case "authenticate":
      return { result: "requires_action" };
    case "decline":
      return { result: "declined", code: "payment_declined" };
    case "no_funds":
      return { result: "declined", code: "insufficient_funds" };
    case "aml_block":
      return { result: "declined", code: "aml_blocked" };
    case "expired":
      throw invalidParameter(
        "card.exp_year",
        "This test card simulates an expired card. Use another, such as 4242 4242 4242 4242",
      );
    case "bank_return":
      return { result: "failed", code: "bank_return", return_code: "R01" };
    case "revert":
      return { result: "failed", code: "onchain_reverted" };
  }
}

/** Decides a transfer by the test value of its destination. Other destinations complete. */
function transfer({ instrument, manual }: TransferRequest): TransferResult {
  if (manual) return { result: "pending" };
  switch (instrument.behaviour) {
    case "bank_return":
      return { result: "failed", code: "bank_return", return_code: "R01" };
    case "revert":
      return { result: "failed", code: "onchain_reverted" };
    default:
      return { result: "completed" };
  }
}

function forced(
  request: AuthorizationRequest,
  outcome: NonNullable<AuthorizationRequest["outcome"]>,
): Authorization {
  switch (outcome) {
    case "success":
      return approved(request, "completed");
    case "pending":
      return { result: "pending" };
    case "declined":
      return { result: "declined", code: "payment_declined" };
    case "refunded":
    case "chargeback":
      return approved(request, outcome);
  }
}

function approved(
  request: AuthorizationRequest,
  result: "completed" | "refunded" | "chargeback",
): Authorization {
  const { method } = request.instrument;
  if (method?.type !== "stablecoin") return { result };
  return {
    result,
    tx_hash: transactionHash(request.amount_minor, request.currency, method.wallet),
  };
}

/** Makes a transaction hash (`0x` and 32 bytes in hex) from amount, currency and wallet. */
export function transactionHash(amount_minor: number, currency: string, wallet: {
  address: string;
  network: Network;
  asset: Stablecoin;
}): string {
  const { address, network, asset } = wallet;
  const paid = canonicalJson({
    amount_minor,
    currency,
    address: address.toLowerCase(),
    network,
    asset,
  });
  return "0x" + createHash("sha256").update(paid).digest("hex");
}
