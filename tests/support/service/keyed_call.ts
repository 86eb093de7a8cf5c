/** Calls a service with a key and JSON: in this process, or at a URL. */

import type { CallOptions, TestResponse } from "./service.ts";

/** A service in this process, or the URL before the path `/<function>/…`. */
type Target = string | { fetch(request: Request): Promise<Response> };

/** The options of a call. */
export type KeyedCall = Omit<CallOptions, "unchecked">;

/** The bytes of a body: an object is sent as JSON, a text or bytes as they are. */
export function sentBody(body: unknown): BodyInit | undefined {
  return body === undefined || typeof body === "string" || body instanceof Uint8Array
    ? body as BodyInit | undefined
    : JSON.stringify(body);
}

/** Sends a request and reads its response. */
export async function keyedCall(
  target: Target,
  method: string,
  path: string,
  { key = null, body, idempotency_key, headers = {} }: KeyedCall = {},
): Promise<TestResponse> {
  const sent = sentBody(body);
  const url = (typeof target === "string" ? target : "http://localhost") + path;
  const request = new Request(url, {
    method,
    headers: {
      ...(key !== null && { Authorization: `Bearer ${key}` }),
      ...(sent !== undefined && { "Content-Type": "application/json" }),
      ...(idempotency_key !== undefined && { "Idempotency-Key": idempotency_key }),
      ...headers,
    },
    ...(sent !== undefined && { body: sent }),
  });
  const response = await (typeof target === "string" ? fetch(request) : target.fetch(request));
  const text = await response.text();
  const is_json = response.headers.get("Content-Type")?.startsWith("application/json");
  const { status, headers: received } = response;
  return { status, headers: received, text, body: is_json ? JSON.parse(text) : undefined };
}
