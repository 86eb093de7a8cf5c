/**
 * A request of the benchmark: as the bytes that the load generator sends, as the `Request` that the
 * recorder answers, and sent as it is.
 */

import type { Product } from "./product.ts";

/** Method, path below the payments function, and what goes with it. */
export interface ApiRequest {
  method: "GET" | "POST" | "DELETE";
  path: string;
  body?: Record<string, unknown>;
  idempotency_key?: string;
}

/** Variant A with an approved card: the fullest change, two events and a ledger transaction. */
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

/** The same in variant B. */
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

/** Without an instrument: stays pending, and so can be cancelled. */
export const CREATE_PENDING = { amount: 1050, currency: "EUR" };

/** The whole request as text. */
export function toWire(product: Product, request: ApiRequest): string {
  const url = new URL(product.base_url + "/api-v1-payments" + request.path);
  const body = request.body === undefined ? "" : JSON.stringify(request.body);
  const lines = [`${request.method} ${url.pathname}${url.search} HTTP/1.1`, `Host: ${url.host}`];
  for (const [name, value] of Object.entries(headersOf(product, request))) {
    lines.push(`${name}: ${value}`);
  }
  if (request.method === "POST") lines.push(`Content-Length: ${body.length}`);
  return lines.join("\r\n") + "\r\n\r\n" + body;
}

/** Sends the request; its answer's body. Throws unless it is answered with success. */
// deno-lint-ignore no-explicit-any -- what it holds is the caller's to know
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

/** The request as a function sees it. */
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
