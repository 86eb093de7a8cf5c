/** A request of the log: its place in words, and the request to send it again. */

import type { LoggedRequest } from "../../../packages/client/mod.ts";
import type { ApiRequest } from "../../../packages/client/transport.ts";
import { TEST_IBANS, testCardOf } from "../../../shared/domain/providers/test_values.ts";
import { shortened } from "./resource_link.ts";

/** Stands in a body for what the log leaves out. */
export const LEFT_OUT = "…";
/** A security code that every test card takes. */
const ANY_CVC = "123";

type Body = Record<string, unknown>;

/** Returns the end of the path with shortened ids: `/payments/pay_…k3v9/refund`. */
export function endOfPath({ path, query }: LoggedRequest): string {
  const end = path.replace(/^\/api-v1-[a-z]+(?:\/v1)?/, "");
  return shortened(query === null ? end : `${end}?${query}`);
}

export function statusTone(status: number): "good" | "warn" | "bad" {
  if (status < 400) return "good";
  return status < 500 ? "warn" : "bad";
}

/** Whether the request changes something, so that it has a body and an idempotency key. */
export function isChange({ method }: LoggedRequest): boolean {
  return method !== "GET";
}

/** Whether the log shows all of the path and of the query. Else nobody can send it again. */
export function isWhole({ path, query }: LoggedRequest): boolean {
  return !/[{*]/.test(path) && !(query ?? "").includes("***");
}

export function requestOf({ method, path, query }: LoggedRequest, body: Body): ApiRequest {
  return {
    method: method as ApiRequest["method"],
    path: [path],
    ...(query !== null && { query: Object.fromEntries(new URLSearchParams(query)) }),
    ...(method !== "GET" && { body }),
  };
}

/**
 * Returns the body to send again. The log leaves out card numbers, security codes and IBANs. Where
 * the response shows the last digits of a test value, that value stands in their place.
 */
export function bodyToSend({ request_body, response_body }: LoggedRequest): Body {
  const body: Body = structuredClone(request_body ?? {});
  const failed = (response_body?.["error"] as { payment?: Body } | undefined)?.payment;
  const shown = failed ?? response_body ?? {};
  fillCard(body["card"], shown["method"]);
  fillIban(body, shown["method"]);
  fillIban(body["destination"], shown["destination"]);
  return body;
}

function fillCard(card: unknown, method: unknown): void {
  if (!isObject(card)) return;
  const last4 = isObject(method) && isObject(method["card"]) ? method["card"]["last4"] : null;
  if (card["number"] === LEFT_OUT && typeof last4 === "string") {
    card["number"] = testCardOf({ last4 })?.value ?? LEFT_OUT;
  }
  if (card["cvc"] === LEFT_OUT) card["cvc"] = ANY_CVC;
}

/** Fills the member `iban` of a holder: a text, or an object with the member `iban`. */
function fillIban(holder: unknown, shown: unknown): void {
  if (!isObject(holder)) return;
  if (isObject(holder["iban"])) return fillIban(holder["iban"], shown);
  const account = isObject(shown) && isObject(shown["iban"]) ? shown["iban"] : {};
  if (holder["iban"] !== LEFT_OUT) return;
  const found = TEST_IBANS.find(({ value }) =>
    value.startsWith(`${account["country"]}`) &&
    value.replaceAll(" ", "").endsWith(`${account["last4"]}`)
  );
  holder["iban"] = found?.value ?? LEFT_OUT;
}

function isObject(value: unknown): value is Body {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
