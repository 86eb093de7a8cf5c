/**
 * Code samples of an operation in curl, TypeScript and Python. They show the recorded example of
 * the operation; `tests/openapi/code_samples_test.ts` runs each of them.
 */

import { CLIENT_METHODS } from "./client_methods.ts";
import { curlOf, fetchOf, KEY_VARIABLE, pythonOf, typescriptOf } from "./snippets.ts";

/** The request that a code sample shows. */
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

/** An entry of `x-codeSamples`. */
export interface CodeSample {
  lang: string;
  label: string;
  source: string;
}

/** Returns the samples, in the order in which the page shows them. */
export function codeSamples(call: SampleCall): CodeSample[] {
  const { operation_id, method, base_url, path, body, secret, reads } = call;
  const is_named = method !== "GET" && secret === KEY_VARIABLE;
  const headers = {
    ...(body && { "Content-Type": "application/json" }),
    ...(is_named && { "Idempotency-Key": keyFor(operation_id) }),
  };
  const text = body && JSON.stringify(body, null, 2);
  const request = { method, url: base_url + path, headers, body: text, secret, reads };
  // The client calls an operation at its main address, so the sample of an alias uses `fetch`.
  const typescript = operation_id in CLIENT_METHODS ? clientSample(call) : fetchOf(request);
  return [
    { lang: "shell", label: "curl", source: curlOf(request) },
    { lang: "typescript", label: "TypeScript", source: typescript },
    { lang: "python", label: "Python", source: pythonOf(request) },
  ];
}

function clientSample({ operation_id, path, base_url, body, id }: SampleCall): string {
  const [resource, method] = CLIENT_METHODS[operation_id]!.split(".") as [string, string];
  const query = path.includes("?") ? queryValues(path.split("?")[1]!) : null;
  const args = [id, body ?? query].filter((arg) => arg !== null);
  return typescriptOf({ resource, method, args }, base_url);
}

function queryValues(query: string): Record<string, unknown> {
  const values = [...new URLSearchParams(query)];
  return Object.fromEntries(
    values.map(([name, value]) => [name, /^\d{1,9}$/.test(value) ? Number(value) : value]),
  );
}

/** Returns a name for the change, such as `refund-payment-1001`. */
function keyFor(operation_id: string): string {
  return `${operation_id.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}-1001`;
}
