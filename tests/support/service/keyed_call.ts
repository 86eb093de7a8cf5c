/** Calls a product with a key and JSON, for tests without a test service. */

import type { openProduct } from "./product.ts";
import type { TestResponse } from "./service.ts";

/** The options of a call. */
export interface KeyedCall {
  key: string;
  body?: unknown;
  idempotency_key?: string;
}

/** Calls the product in this process. */
export async function keyedCall(
  product: ReturnType<typeof openProduct>,
  method: string,
  path: string,
  { key, body, idempotency_key }: KeyedCall,
): Promise<TestResponse> {
  const response = await product.fetch(
    new Request(`http://localhost${path}`, {
      method,
      headers: {
        Authorization: `Bearer ${key}`,
        ...(body !== undefined && { "Content-Type": "application/json" }),
        ...(idempotency_key !== undefined && { "Idempotency-Key": idempotency_key }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    }),
  );
  const text = await response.text();
  const { status, headers } = response;
  return { status, headers, text, body: text === "" ? undefined : JSON.parse(text) };
}
