/** Makes the HTTP requests of planned actions. */

import { INSTRUMENTS } from "./instruments.ts";
import type { Action } from "./plan.ts";

/** A request without its key. */
export interface PlannedRequest {
  method: "GET" | "POST";
  path: string;
  body: Record<string, unknown> | null;
}

const PAYMENTS = "/api-v1-payments/v1/payments";
const TRANSFERS = "/api-v1-payments/v1/transfers";
const SANDBOX = "/api-v1-sandbox";
const DESTINATIONS = {
  approved: {
    iban: { iban: "GB82WEST12345698765432" },
    wallet: { wallet: "0x000000000000000000000000000000000000dEaD" },
  },
  returned: {
    iban: { iban: "DE00000000000000000099" },
    wallet: { wallet: "0x0000000000000000000000000000000000000BAD" },
  },
} as const;

/**
 * The request of an action.
 * @param id id of the payment, transfer or refund; creates do not use it
 */
export function requestOf(action: Action, id: string): PlannedRequest {
  const post = (path: string, body: Record<string, unknown> = {}): PlannedRequest => ({
    method: "POST",
    path,
    body,
  });
  const get = (path: string): PlannedRequest => ({ method: "GET", path, body: null });
  switch (action.do) {
    case "create": {
      const { instrument, outcome, amount, currency, is_sandbox } = action;
      return post(is_sandbox ? `${SANDBOX}/payments` : PAYMENTS, {
        [is_sandbox ? "amount_minor" : "amount"]: amount,
        currency,
        ...INSTRUMENTS[instrument]!.body,
        ...(outcome !== null && { outcome }),
      });
    }
    case "cancel":
      return post(`${PAYMENTS}/${id}/cancel`);
    case "capture":
    case "refund":
      return post(
        `${PAYMENTS}/${id}/${action.do}`,
        action.amount === null ? {} : { amount: action.amount },
      );
    case "advance_refund":
      return post(`${SANDBOX}/refunds/${id}/advance`, { to: action.to });
    case "advance":
      return post(`${SANDBOX}/payments/${id}/advance`, { to: action.to });
    case "authenticate":
      return post(`${SANDBOX}/payments/${id}/authenticate`, { result: action.result });
    case "get":
      return get(`${PAYMENTS}/${id}`);
    case "list":
      return get(`${PAYMENTS}?limit=5`);
    case "list_refunds":
      return get(`${PAYMENTS}/${id}/refunds`);
    case "balance":
      return get("/api-v1-payments/v1/balance");
    case "reset":
      return post(`${SANDBOX}/reset`);
    case "transfer": {
      const { amount, currency, destination, is_manual } = action;
      return post(TRANSFERS, {
        amount,
        currency,
        destination: destinationOf(destination, currency),
        settlement: is_manual ? "manual" : "instant",
      });
    }
    case "cancel_transfer":
      return post(`${TRANSFERS}/${id}/cancel`);
    case "advance_transfer":
      return post(`${SANDBOX}/transfers/${id}/advance`, { to: action.to });
  }
}

/** The same request with one field changed, and a create in place of one that takes no field. */
export function changed({ method, path, body }: PlannedRequest): PlannedRequest {
  const { amount, amount_minor, to, result } = body ?? {};
  const other = typeof amount === "number"
    ? { amount: amount + 1 }
    : typeof amount_minor === "number"
    ? { amount_minor: amount_minor + 1 }
    : to !== undefined
    ? { to: to === "failed" ? "completed" : "failed" }
    : result !== undefined
    ? { result: result === "failure" ? "success" : "failure" }
    : /\/(refund|capture)$/.test(path)
    ? { amount: 1 }
    : null;
  if (other !== null) return { method, path, body: { ...body, ...other } };
  return { method, path: PAYMENTS, body: { amount: 1, currency: "EUR" } };
}

/** The IBAN or wallet for a currency. The test IBAN that returns transfers is for EUR only. */
function destinationOf(result: "approved" | "returned", currency: string) {
  const is_coin = currency === "USDC" || currency === "USDT";
  if (is_coin) return DESTINATIONS[result].wallet;
  return result === "returned" && currency !== "EUR"
    ? DESTINATIONS.approved.iban
    : DESTINATIONS[result].iban;
}
