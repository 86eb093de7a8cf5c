/** The request that a code sample shows. */

export const KEY_VARIABLE = "PAYMENTS_API_KEY";
/** Environment variable of the samples that has the operator's token. */
export const TOKEN_VARIABLE = "RELAY_TOKEN";

export interface SampleCall {
  operation_id: string;
  method: string;
  /** Path after the base URL, with its ids and its query. */
  path: string;
  base_url: string;
  /** The body; null without one. */
  body: Readonly<Record<string, unknown>> | null;
  /** Id or idempotency key in the path; null without one. */
  id: string | null;
  /** Environment variable with the key or token; null for an address without one. */
  secret: string | null;
  /** How a program reads the response. */
  reads: "json" | "text";
}

/** Returns a name for the change, such as `refund-payment-1001`; null for a request that reads. */
export function idempotencyKey({ operation_id, method, secret }: SampleCall): string | null {
  if (method === "GET" || secret !== KEY_VARIABLE) return null;
  return `${operation_id.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}-1001`;
}
