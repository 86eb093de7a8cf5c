/** The sample for Python, with the package requests. */

import { idempotencyKey, type SampleCall } from "./sample_call.ts";
import { literal, type LiteralForm } from "./literal.ts";

const PYTHON: LiteralForm = {
  constant: (value) => ({ null: "None", true: "True", false: "False" })[`${value}`],
  member: (name) => `${JSON.stringify(name)}: `,
  padding: "",
  step: 4,
  trailing_comma: true,
};

/** Returns the program. It prints the response. */
export function pythonSample(call: SampleCall): string {
  const { method, path, base_url, body, secret, reads } = call;
  const [plain_path, query] = path.split("?");
  const key = idempotencyKey(call);
  const headers = [
    ...(secret === null ? [] : [`"Authorization": f"Bearer {os.environ['${secret}']}",`]),
    ...(key === null ? [] : [`"Idempotency-Key": "${key}",`]),
  ];
  const parameters = query && Object.fromEntries(new URLSearchParams(query));
  return [
    "# pip install requests",
    ...(secret === null ? [] : ["import os", ""]),
    "import requests",
    "",
    `response = requests.${method.toLowerCase()}(`,
    `    "${base_url}${plain_path}",`,
    ...(headers.length === 0
      ? []
      : ["    headers={", ...headers.map((line) => `        ${line}`), "    },"]),
    ...(parameters ? [`    params=${literal(parameters, PYTHON, 4, 8)},`] : []),
    ...(body === null ? [] : [`    json=${literal(body, PYTHON, 4, 6)},`]),
    "    timeout=30,",
    ")",
    reads === "json" ? "print(response.json())" : "print(response.text)",
  ].join("\n");
}
