/** Makes the HTTP requests of planned actions. */

import { createdIn, SANDBOX, V1 } from "../../harness/client.ts";
import { DESTINATIONS, INSTRUMENTS } from "../../../support/model/instruments.ts";
import type { Finished } from "./clients.ts";
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
    case "move":
      return requestOfMove(`payments/${id}`, action.move);
    case "advance_refund":
      return requestOfMove(`refunds/${id}`, { do: "advance", to: action.to });
    case "move_transfer":
      return requestOfMove(`transfers/${id}`, action.move);
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
  }
}

/** Null is left out. */
function requestOfMove(
  path: string,
  { do: verb, ...fields }: { do: string } & Record<string, unknown>,
): PlannedRequest {
  const is_sandbox = verb === "advance" || verb === "authenticate";
  const body = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null));
  return post(`${is_sandbox ? SANDBOX : V1}/${path}/${verb}`, body);
}

function post(path: string, body: Record<string, unknown> = {}): PlannedRequest {
  return { method: "POST", path, body };
}

function get(path: string): PlannedRequest {
  return { method: "GET", path, body: null };
}

const OTHERS: Readonly<Record<string, (value: unknown) => unknown>> = {
  amount: (amount) => amount as number + 1,
  amount_minor: (amount) => amount as number + 1,
  to: (status) => status === "failed" ? "completed" : "failed",
  result: (result) => result === "failure" ? "success" : "failure",
};

/** The same request with one field changed, and a create in place of one that takes no field. */
export function changed({ method, path, body }: PlannedRequest): PlannedRequest {
  const [name, value] = Object.entries(body ?? {}).find(([name]) => name in OTHERS) ?? [];
  const other = name !== undefined
    ? { [name]: OTHERS[name]!(value) }
    : /\/(refund|capture)$/.test(path)
    ? { amount: 1 }
    : null;
  return other === null
    ? post(PAYMENTS, { amount: 1, currency: "EUR" })
    : { method, path, body: { ...body, ...other } };
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

/**
 * The id in the request of an action: of a refund, an instrument, or the payment or transfer.
 * @param told the operations of its story before
 */
export function idFor(action: Action, told: readonly Finished[]): string {
  const [text] = told.map(({ responses: [{ text }] }) => text);
  if (text === undefined) return "none";
  if (action.do === "use" || action.do === "end") return savedIn(text) ?? "none";
  if (action.do !== "advance_refund") return createdIn(text) ?? "none";
  const refunds = told.filter(({ operation: { action } }) =>
    action.do === "move" && action.move.do === "refund"
  ).flatMap(({ responses: [{ status, text }] }) => status === 201 ? JSON.parse(text).id : []);
  return refunds[Math.floor(action.which * refunds.length)] ?? NO_REFUND;
}
