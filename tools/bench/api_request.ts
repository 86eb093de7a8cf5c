/** The requests of the benchmark: as text for the load generator, as a `Request`, and sent. */

import type { Product } from "./product.ts";

export const PAYMENTS = "/v1/payments";

/** A request to the payments function. */
export interface ApiRequest {
  method: "GET" | "POST" | "DELETE";
  path: string;
  body?: Record<string, unknown>;
  idempotency_key?: string;
}

/** Variant A with an approved card: two events and a ledger transaction. */
export const CREATE_A = {
  amount: 1050,
  currency: "EUR",
  capability: "card_payment",
  customer: { email: "ada@example.com", name: "Ada Lovelace" },
  card: { number: "4242 4242 4242 4242", exp_month: 12, exp_year: 2034, cvc: "123" },
  description: "Order 1815-12-10",
  reference: "order-18151210",
  metadata: { order: "18151210", channel: "web" },
};

/** The same payment in variant B. */
export const CREATE_B = {
  amount_minor: 1050,
  currency: "EUR",
  method_kind: "card",
  payer: { email: "ada@example.com", name: "Ada Lovelace" },
  card: { number: "4242 4242 4242 4242", exp_month: 12, exp_year: 2034, cvc: "123" },
  description: "Order 1815-12-10",
  reference: "order-18151210",
  metadata: { order: "18151210", channel: "web" },
};

/** A create with an idempotency key. */
export function createOf(body: Record<string, unknown>, idempotency_key: string): ApiRequest {
  return { method: "POST", path: PAYMENTS, body, idempotency_key };
}

/** The complete request to the product as text. */
export function toWire(product: Product, request: ApiRequest): string {
  const { method, path, body } = request;
  const url = `${product.base_url}/api-v1-payments${path}`;
  return wireText(method, url, headersOf(product, request), body && JSON.stringify(body));
}

/** A complete HTTP/1.1 request as text. */
export function wireText(
  method: ApiRequest["method"],
  url: string,
  headers: Record<string, string>,
  body = "",
): string {
  const { pathname, search, host } = new URL(url);
  const lines = [`${method} ${pathname}${search} HTTP/1.1`, `Host: ${host}`];
  for (const [name, value] of Object.entries(headers)) lines.push(`${name}: ${value}`);
  if (method === "POST") lines.push(`Content-Length: ${new TextEncoder().encode(body).length}`);
  return lines.join("\r\n") + "\r\n\r\n" + body;
}

/** Sends the request and returns the body of the response. Throws if the status is no success. */
// deno-lint-ignore no-explicit-any -- the caller knows the shape
export async function ask(product: Product, request: ApiRequest): Promise<any> {
  const { method, path, body } = request;
  const response = await fetch(`${product.base_url}/api-v1-payments${path}`, {
    method,
    headers: headersOf(product, request),
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
  return text === "" ? null : JSON.parse(text);
}

/** The request as the function gets it. */
export function toRequest(product: Product, request: ApiRequest): Request {
  return new Request(`http://127.0.0.1/api-v1-payments${request.path}`, {
    method: request.method,
    headers: headersOf(product, request),
    ...(request.body !== undefined && { body: JSON.stringify(request.body) }),
  });
}

function headersOf(product: Product, { body, idempotency_key }: ApiRequest) {
  return {
    Authorization: `Bearer ${product.test_key}`,
    ...(body !== undefined && { "Content-Type": "application/json" }),
    ...(idempotency_key !== undefined && { "Idempotency-Key": idempotency_key }),
  };
}
