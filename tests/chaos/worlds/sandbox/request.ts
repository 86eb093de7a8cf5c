/** Makes the HTTP requests of planned actions. */

import { createdIn, SANDBOX, V1 } from "../../harness/client.ts";
import { DESTINATIONS, INSTRUMENTS } from "../../../support/model/instruments.ts";
import type { Action } from "./plan.ts";

export interface PlannedRequest {
  method: "GET" | "POST" | "DELETE";
  path: string;
  body: Record<string, unknown> | null;
}

const PAYMENTS = `${V1}/payments`;
const TRANSFERS = `${V1}/transfers`;
const BACK = { return_url: "https://example.com/return" };
const COINS = ["USDC", "USDT"];

/**
 * The request of an action.
 * @param id id of the payment, transfer, refund or instrument; creates do not use it
 */
export function requestOf(action: Action, id: string): PlannedRequest {
  switch (action.do) {
    case "create": {
      const { instrument, outcome, amount, currency, is_sandbox, save, customer = "c1" } = action;
      return post(is_sandbox ? `${SANDBOX}/payments` : PAYMENTS, {
        [is_sandbox ? "amount_minor" : "amount"]: amount,
        currency,
        ...INSTRUMENTS[instrument]!.body,
        ...(outcome !== null && { outcome }),
        ...(save && { save, customer: { id: customer, email: "c@example.com" }, ...BACK }),
      });
    }
    case "use": {
      const { amount, off_session } = action;
      return post(PAYMENTS, { amount, currency: "EUR", instrument: id, off_session });
    }
    case "end":
      return { method: "DELETE", path: `${V1}/instruments/${id}`, body: null };
    case "cancel":
      return post(`${PAYMENTS}/${id}/cancel`);
    case "capture":
    case "refund": {
      const { amount } = action;
      return post(`${PAYMENTS}/${id}/${action.do}`, amount === null ? {} : { amount });
    }
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
      return get(`${V1}/balance`);
    case "reset":
      return post(`${SANDBOX}/reset`);
    case "transfer": {
      const { amount, currency, destination: result, is_manual } = action;
      const destination = destinationOf(result, currency);
      const settlement = is_manual ? "manual" : "instant";
      return post(TRANSFERS, { amount, currency, destination, settlement });
    }
    case "cancel_transfer":
      return post(`${TRANSFERS}/${id}/cancel`);
    case "advance_transfer":
      return post(`${SANDBOX}/transfers/${id}/advance`, { to: action.to });
  }
}

function post(path: string, body: Record<string, unknown> = {}): PlannedRequest {
  return { method: "POST", path, body };
}

function get(path: string): PlannedRequest {
  return { method: "GET", path, body: null };
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
  return post(PAYMENTS, { amount: 1, currency: "EUR" });
}

/** The IBAN or wallet for a currency. The test IBAN that returns transfers is for EUR only. */
function destinationOf(result: "approved" | "returned", currency: string) {
  if (COINS.includes(currency)) return DESTINATIONS[result].wallet;
  return DESTINATIONS[currency === "EUR" ? result : "approved"].iban;
}

/** The id of the instrument in the response to a create; null: it saves none. */
export function savedIn(body: string): string | null {
  const { error, instrument_id } = JSON.parse(body);
  return (error?.payment?.instrument_id ?? instrument_id) || null;
}

const NO_REFUND = "re_" + "0".repeat(26);

/** Collects the ids that the requests of a story need, from the responses to its earlier ones. */
export class StoryIds {
  /** Id of the payment or transfer; null without one, so the story ends. */
  subject: string | null = "none";
  #instrument = "none";
  readonly #refunds: string[] = [];

  /** The id in the request of an action: of a refund, an instrument, or the payment or transfer. */
  idFor(action: Action): string {
    if (action.do === "use" || action.do === "end") return this.#instrument;
    if (action.do !== "advance_refund") return this.subject ?? "none";
    return this.#refunds[Math.floor(action.which * this.#refunds.length)] ?? NO_REFUND;
  }

  /** Reads the ids in the response to an action. @param status 0 without a response */
  learn(action: Action, status: number, body: string): void {
    if (action.do === "create" || action.do === "transfer") {
      this.subject = createdIn(body);
      this.#instrument = savedIn(body) ?? "none";
    }
    if (action.do === "refund" && status === 201) this.#refunds.push(JSON.parse(body).id);
  }
}
