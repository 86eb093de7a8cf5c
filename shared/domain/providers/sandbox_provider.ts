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
  Capture,
  Provider,
  TransferRequest,
  TransferResult,
} from "./provider.ts";
import { OUTCOME_RESULTS, TEST_RESULTS } from "./test_values.ts";

const EXPIRED_CARD =
  "This test card simulates an expired card. Use another, such as 4242 4242 4242 4242";

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
  if (outcome) return withHash(request, OUTCOME_RESULTS[outcome]);
  if (!instrument.behaviour) return { result: "pending" };
  if (request.manual && instrument.kind !== "card") return { result: "pending" };
  const answer = TEST_RESULTS[instrument.behaviour];
  if (answer.result === "refused") throw invalidParameter(answer.param, EXPIRED_CARD);
  return withHash(request, answer);
}

/** Decides a transfer by the test value of its destination. Other destinations complete. */
function transfer({ instrument, manual }: TransferRequest): TransferResult {
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
