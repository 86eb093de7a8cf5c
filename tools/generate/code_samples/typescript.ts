/** The sample for TypeScript: the project's client, or `fetch` for what the client leaves out. */

import { CLIENT_INSTALLATION } from "../../publication/client_installation.ts";
import { CLIENT_METHODS } from "./client_methods.ts";
import { idempotencyKey, type SampleCall } from "./sample_call.ts";
import { literal, type LiteralForm } from "./literal.ts";

const TYPESCRIPT: LiteralForm = {
  constant: String,
  member: (name) => `${/^[A-Za-z_]\w*$/.test(name) ? name : JSON.stringify(name)}: `,
  padding: " ",
  step: 2,
  trailing_comma: true,
};

/** Returns the module. It prints the response. */
export function typescriptSample(call: SampleCall): string {
  const { operation_id, path, base_url, body, id } = call;
  // The client calls an operation at its main address, so the sample of an alias uses `fetch`.
  const method = CLIENT_METHODS[operation_id];
  if (method === undefined) return fetchSample(call);
  const query = path.split("?")[1];
  const values = body ?? (query ? queryValues(query) : null);
  const start = `const response = await client.${method}(`;
  const first = id === null ? "" : JSON.stringify(id);
  const second = values === null ? "" : literal(values, TYPESCRIPT, 0, start.length + first.length);
  return [
    ...CLIENT_INSTALLATION,
    'import { PaymentsClient } from "@payments-api/client";',
    "",
    `// The client reads PAYMENTS_BASE_URL (${base_url}) and PAYMENTS_API_KEY.`,
    "const client = new PaymentsClient();",
    `${start}${[first, second].filter((text) => text !== "").join(", ")});`,
    "console.log(response);",
  ].join("\n");
}

function queryValues(query: string): Record<string, unknown> {
  return Object.fromEntries(
    [...new URLSearchParams(query)].map(([name, value]) => [
      name,
      /^\d{1,9}$/.test(value) ? Number(value) : value,
    ]),
  );
}

function fetchSample(call: SampleCall): string {
  const { method, path, base_url, body, secret, reads } = call;
  const key = idempotencyKey(call);
  const headers = [
    ...(secret === null ? [] : [`Authorization: \`Bearer \${process.env.${secret}}\`,`]),
    ...(body === null ? [] : ['"Content-Type": "application/json",']),
    ...(key === null ? [] : [`"Idempotency-Key": "${key}",`]),
  ];
  const options = [
    ...(method === "GET" ? [] : [`  method: "${method}",`]),
    ...(headers.length === 0
      ? []
      : ["  headers: {", ...headers.map((line) => `    ${line}`), "  },"]),
    ...(body === null ? [] : [`  body: JSON.stringify(${literal(body, TYPESCRIPT, 2, 24)}),`]),
  ];
  const url = JSON.stringify(base_url + path);
  return [
    ...(options.length === 0
      ? [`const response = await fetch(${url});`]
      : [`const response = await fetch(${url}, {`, ...options, "});"]),
    `console.log(await response.${reads}());`,
  ].join("\n");
}
