/**
 * The simulated provider of the sandbox, a pure function (interface §4, contract §2). The same
 * request always has the same result, on any machine and at any time.
 */

import { createHash } from "node:crypto";
import { canonicalJson } from "../../core/canonical_json.ts";
import type { Stablecoin } from "../../core/currency.ts";
import { type DeclineCode, invalidParameter } from "../../core/errors.ts";
import type { Network } from "../../core/wallet_address.ts";
import type { DisputeReason } from "../../schema/dispute.ts";
import type { MethodKind, Outcome } from "../../schema/payment.ts";
import type { Instrument } from "./instrument.ts";
import { OUTCOME_RESULTS, TEST_RESULTS } from "./test_values.ts";

const EXPIRED_CARD =
  "This test card simulates an expired card. Use another, such as 4242 4242 4242 4242";

/** A request to authorize a payment. */
export interface AuthorizationRequest {
  amount_minor: number;
  /** Upper case. */
  currency: string;
  instrument: Instrument;
  /** A result that overrides the instrument. */
  outcome: Outcome | null;
  /** True: an asynchronous rail waits for an advance. */
  manual: boolean;
}

/** The money has come in. An outcome can force that it goes back at once. */
interface Capture {
  result: "completed" | "refunded" | "chargeback";
  /** Of a dispute that a test value causes. */
  reason?: DisputeReason;
  /** Of a stablecoin payment. */
  tx_hash?: string;
}

/** The answer to an authorization. */
export type Authorization =
  | Capture
  | { result: "pending" }
  /** The answer of a real provider would be unknown for now. */
  | { result: "processing" }
  | { result: "requires_action" }
  | { result: "declined"; code: DeclineCode }
  | { result: "failed"; code: RailFailure["code"]; return_code?: string };

/** The way in which a rail fails. */
interface RailFailure {
  code: "processing_failed" | "bank_return" | "onchain_reverted";
  return_code: string | null;
}

/** The failure of each rail, for advances and declared faults. */
export const RAIL_FAILURES: Record<MethodKind, RailFailure> = {
  card: { code: "processing_failed", return_code: null },
  sepa: { code: "bank_return", return_code: "R01" },
  swift: { code: "bank_return", return_code: "R01" },
  stablecoin: { code: "onchain_reverted", return_code: null },
};

/** The answer to a transfer. */
type TransferResult = Extract<Authorization, { result: "failed" | "pending" }> | {
  result: "completed";
};

/** Decides a payment. Throws `invalid_parameter` for a card that has expired. */
export function authorizePayment(request: AuthorizationRequest): Authorization {
  const { instrument, outcome } = request;
  // An explicit outcome overrides every instrument (contract §2).
  if (outcome) return withHash(request, OUTCOME_RESULTS[outcome]);
  if (!instrument.behaviour) return { result: "pending" };
  if (request.manual && instrument.kind !== "card") return { result: "pending" };
  const answer = TEST_RESULTS[instrument.behaviour];
  if (answer.result === "refused") throw invalidParameter(answer.param, EXPIRED_CARD);
  return withHash(request, answer);
}

/** Decides a transfer by the test value of its destination. Other destinations complete. */
export function authorizeTransfer(
  { instrument, manual }: Omit<AuthorizationRequest, "outcome">,
): TransferResult {
  if (manual) return { result: "pending" };
  const answer = TEST_RESULTS[instrument.behaviour ?? "approve"];
  return answer.result === "failed" ? answer : { result: "completed" };
}

/** The answer, with the hash of the transaction if money came from a wallet. */
function withHash(request: AuthorizationRequest, answer: Authorization): Authorization {
  const { method } = request.instrument;
  if (method?.type !== "stablecoin" || !isCapture(answer)) return answer;
  return {
    ...answer,
    tx_hash: transactionHash(request.amount_minor, request.currency, method.wallet),
  };
}

function isCapture(answer: Authorization): answer is Capture {
  return ["completed", "refunded", "chargeback"].includes(answer.result);
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
