/** Calls the API over HTTP, without retries. */

/** A response with its body. */
interface ApiResponse {
  status: number;
  text: string;
  // deno-lint-ignore no-explicit-any
  body: any;
  headers: Headers;
  ms: number;
}

/**
 * Sends a request: by default a POST if it has a body, otherwise a GET.
 * @param path after the base URL, such as `/api-v1-payments/v1/payments`
 */
export async function callApi(
  base_url: string,
  api_key: string,
  path: string,
  options: { method?: string; body?: unknown; key?: string; client?: Deno.HttpClient } = {},
): Promise<ApiResponse> {
  const { body, key, client } = options;
  const method = options.method ?? (body === undefined ? "GET" : "POST");
  const started = performance.now();
  const response = await fetch(base_url + path, {
    method,
    ...(client !== undefined && { client }),
    headers: {
      Authorization: `Bearer ${api_key}`,
      ...(body !== undefined && { "Content-Type": "application/json" }),
      ...(key !== undefined && { "Idempotency-Key": key }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return {
    status: response.status,
    text,
    body: JSON.parse(text),
    headers: response.headers,
    ms: performance.now() - started,
  };
}

/** Path of sandbox payments. */
export const SANDBOX_PAYMENTS = "/api-v1-sandbox/payments";
/** Path of webhook endpoints. */
export const ENDPOINTS = "/api-v1-payments/v1/webhook_endpoints";

/** Makes a webhook endpoint; returns its id and secret. */
export async function addEndpoint(
  base_url: string,
  api_key: string,
  url: string,
  events: string[],
): Promise<{ id: string; secret: string }> {
  const { status, body } = await callApi(base_url, api_key, ENDPOINTS, { body: { url, events } });
  if (status !== 201) throw new Error(`no endpoint: ${JSON.stringify(body)}`);
  return body;
}
