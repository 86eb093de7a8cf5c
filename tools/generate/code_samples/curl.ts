/** The sample for curl. */

import { idempotencyKey, type SampleCall } from "./sample_call.ts";
import { literal, type LiteralForm } from "./literal.ts";

const JSON_FORM: LiteralForm = {
  constant: String,
  member: (name) => `${JSON.stringify(name)}: `,
  padding: "",
  step: 2,
  trailing_comma: false,
};

export function curlSample(call: SampleCall): string {
  const { method, path, base_url, body, secret } = call;
  const has_query = path.includes("?");
  const url = `${base_url}${path}`;
  const implied = body === null ? "GET" : "POST";
  const words = [
    `curl ${method === implied ? "" : `-X ${method} `}${has_query ? `"${url}"` : url}`,
    ...(secret === null ? [] : [`-H "Authorization: Bearer $${secret}"`]),
    ...(body === null ? [] : [`-H "Content-Type: application/json"`]),
    ...(idempotencyKey(call) === null ? [] : [`-H "Idempotency-Key: ${idempotencyKey(call)}"`]),
    ...(body === null ? [] : [`-d '${literal(body, JSON_FORM, 2, 4).replaceAll("'", "'\\''")}'`]),
  ];
  return words.join(" \\\n  ");
}
