/**
 * Snippets of a call to copy: a command for a shell, and a module for the TypeScript client. They
 * do not contain the key, but read it from the environment variable API_KEY.
 */

import type { Exchange } from "../client/mod.ts";

/** A call of the client as data: a method such as `payments.create` with its arguments. */
export interface DescribedCall {
  resource: string;
  method: string;
  args: readonly unknown[];
}

/** Headers that curl sets by itself or that only a browser sends. */
const OWN_HEADERS = new Set(["authorization", "accept", "user-agent"]);

/** Returns the request as a command for a POSIX shell. */
export function curlOf({ method, url, headers, body }: Exchange["request"]): string {
  const lines = [`curl ${method === "GET" ? "" : `-X ${method} `}${quote(url)}`];
  lines.push('-H "Authorization: Bearer $API_KEY"');
  for (const [name, value] of Object.entries(headers)) {
    if (!OWN_HEADERS.has(name.toLowerCase())) lines.push(`-H ${quote(`${name}: ${value}`)}`);
  }
  if (body !== null) lines.push(`-d ${quote(body)}`);
  return lines.join(" \\\n  ");
}

/** Returns the call as a module that uses the client in `client/`. */
export function typescriptOf({ resource, method, args }: DescribedCall, base_url: string): string {
  const shown = args.map((arg) => literal(arg, ""));
  return [
    'import { PaymentsClient } from "@payments-api/client";',
    "",
    "const client = new PaymentsClient({",
    "  apiKey: process.env.API_KEY!,",
    `  baseUrl: ${JSON.stringify(base_url)},`,
    "});",
    "",
    `const answer = await client.${resource}.${method}(${shown.join(", ")});`,
    "console.log(answer);",
  ].join("\n");
}

/** Returns a JSON value as TypeScript. Names that need no quotes have none. */
function literal(value: unknown, indent: string): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const inner = `${indent}  `;
  if (Array.isArray(value)) return `[${value.map((item) => literal(item, inner)).join(", ")}]`;
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  if (members.length === 0) return "{}";
  const lines = members.map(([name, member]) => {
    // A quoted "__proto__" would set the prototype. In brackets it is an ordinary name.
    const key = name === "__proto__" ? '["__proto__"]' : JSON.stringify(name);
    const shown = /^[A-Za-z_$][\w$]*$/.test(name) && name !== "__proto__" ? name : key;
    return `${inner}${shown}: ${literal(member, inner)},\n`;
  });
  return `{\n${lines.join("")}${indent}}`;
}

function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
