/**
 * Brings the exchanges and events of two modes into a form that can be compared: without ids,
 * times, the mode, addresses and the settlement, which only a sandbox has.
 */

import type { Event, Exchange } from "../../../packages/client/mod.ts";

/** Members that differ by intent. `request` of an event names the request that caused it. */
const LEFT_OUT = ["livemode", "settlement", "request", "request_id", "idempotency_key"];
const ID = /\b(pay|re|dp|evt|req)_[0-9a-z]{26}\b/g;
const TIME = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/;
const CARD = ["last4", "exp_month", "exp_year"];

/** Returns a value without the parts that differ by intent. */
export function comparable(value: unknown, name = ""): unknown {
  if (Array.isArray(value)) return value.map((one) => comparable(one));
  if (typeof value === "object" && value !== null) {
    return Object.fromEntries(
      Object.entries(value).filter(([member]) => !LEFT_OUT.includes(member))
        .map(([member, one]) => [member, comparable(one, member)]),
    );
  }
  // Each mode has test cards of its own.
  if (CARD.includes(name)) return typeof value;
  if (typeof value !== "string") return value;
  if (TIME.test(value)) return "time";
  const text = value.replace(ID, "$1_");
  return name === "url" ? "url" : text;
}

/** Statuses and events before the provider's response, when only the sandbox knows the card. */
const BEFORE_RESPONSE = ["processing", "payment.created", "payment.processing"];

/** Returns a request and its response in a comparable form. */
export function comparableExchange({ request, response }: Exchange) {
  const { pathname } = new URL(request.url);
  const body = JSON.parse(response?.body ?? "null");
  return comparable({
    requested: `${request.method} ${pathname}`,
    status: response?.status,
    body: withoutEarlyCard(body, body?.status),
  });
}

/** Returns an event in a comparable form. */
export function comparableEvent({ type, sequence, data }: Event) {
  return comparable({ type, sequence, object: withoutEarlyCard(data.object, type) });
}

function withoutEarlyCard(object: object, state: string): object {
  return BEFORE_RESPONSE.includes(state) ? { ...object, method: null } : object;
}
