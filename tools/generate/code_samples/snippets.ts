/**
 * Snippets to copy: of a request as a command for a shell, and in TypeScript and Python without the
 * client; of a call as a module for the TypeScript client. They do not contain the key, but read it
 * from an environment variable.
 */

import type { Exchange } from "../../../packages/client/mod.ts";
import { CLIENT_INSTALLATION } from "../../publication/client_installation.ts";

/** A call of the client as data: a method such as `payments.create` with its arguments. */
export interface DescribedCall {
  resource: string;
  method: string;
  args: readonly unknown[];
}

type SampleRequest = Exchange["request"] & {
  /** Environment variable with the key or token; null for an address without one. */
  secret?: string | null;
  /** How a program reads the response; by default as JSON. */
  reads?: "json" | "text";
};

/** The environment variable of the key. */
export const KEY_VARIABLE = "PAYMENTS_API_KEY";
/** Headers that every snippet sets by itself or that only a browser sends. */
const OWN_HEADERS = new Set(["authorization", "accept", "user-agent"]);

/** Returns the request as a command for a POSIX shell. */
export function curlOf(request: SampleRequest): string {
  const { method, url, body, secret = KEY_VARIABLE } = request;
  const lines = [`curl ${method === "GET" ? "" : `-X ${method} `}${quote(url)}`];
  if (secret !== null) lines.push(`-H "Authorization: Bearer $${secret}"`);
  for (const [name, value] of shownHeaders(request)) lines.push(`-H ${quote(`${name}: ${value}`)}`);
  if (body !== null) lines.push(`-d ${quote(body)}`);
  return lines.join(" \\\n  ");
}

/** Returns the request as a TypeScript module that needs no package. */
export function fetchOf(request: SampleRequest): string {
  const { method, url, body, secret = KEY_VARIABLE, reads = "json" } = request;
  const lines = [
    `const response = await fetch(${JSON.stringify(url)}, {`,
    `  method: "${method}",`,
    "  headers: {",
    ...(secret === null ? [] : [`    Authorization: \`Bearer \${process.env.${secret}}\`,`]),
    ...shownHeaders(request).map((header) =>
      `    ${header.map((text) => JSON.stringify(text)).join(": ")},`
    ),
    "  },",
  ];
  if (body !== null) {
    lines.push(`  body: JSON.stringify(${literal(JSON.parse(body), "  ", TYPESCRIPT)}),`);
  }
  return [...lines, "});", `console.log(response.status, await response.${reads}());`].join("\n");
}

/** Returns the request as a Python program with the package requests. */
export function pythonOf(request: SampleRequest): string {
  const { method, url, body, secret = KEY_VARIABLE, reads = "json" } = request;
  const lines = [
    "# pip install requests",
    "import os",
    "",
    "import requests",
    "",
    "response = requests.request(",
    `    "${method}",`,
    `    ${JSON.stringify(url)},`,
    "    headers={",
    ...(secret === null ? [] : [`        "Authorization": f"Bearer {os.environ['${secret}']}",`]),
    ...shownHeaders(request).map((header) =>
      `        ${header.map((text) => JSON.stringify(text)).join(": ")},`
    ),
    "    },",
  ];
  if (body !== null) lines.push(`    json=${literal(JSON.parse(body), "    ", PYTHON)},`);
  const read = reads === "json" ? "json()" : "text";
  return [...lines, "    timeout=30,", ")", `print(response.status_code, response.${read})`]
    .join("\n");
}

/** Returns the call as a module that uses the client in `packages/client/`. */
export function typescriptOf({ resource, method, args }: DescribedCall, base_url: string): string {
  const shown = args.map((arg) => literal(arg, "", TYPESCRIPT));
  return [
    ...CLIENT_INSTALLATION,
    'import { PaymentsClient } from "@payments-api/client";',
    "",
    `// The client reads PAYMENTS_BASE_URL (${base_url}) and PAYMENTS_API_KEY.`,
    "const client = new PaymentsClient();",
    "",
    `const response = await client.${resource}.${method}(${shown.join(", ")});`,
    "console.log(response);",
  ].join("\n");
}

interface Language {
  constant(value: boolean | null): string;
  name(name: string): string;
  step: string;
}

const TYPESCRIPT: Language = {
  constant: String,
  name(name) {
    // A quoted "__proto__" would set the prototype. In brackets it is an ordinary name.
    if (name === "__proto__") return '["__proto__"]';
    return /^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name);
  },
  step: "  ",
};

const PYTHON: Language = {
  constant: (value) => value === null ? "None" : value ? "True" : "False",
  name: (name) => JSON.stringify(name),
  step: "    ",
};

/** Returns a JSON value as a literal of a language. `indent` is that of the line it begins on. */
function literal(value: unknown, indent: string, language: Language): string {
  if (value === null || typeof value === "boolean") return language.constant(value);
  if (typeof value !== "object") return JSON.stringify(value);
  const inner = `${indent}${language.step}`;
  if (Array.isArray(value)) {
    return `[${value.map((item) => literal(item, inner, language)).join(", ")}]`;
  }
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  if (members.length === 0) return "{}";
  const lines = members.map(([name, member]) =>
    `${inner}${language.name(name)}: ${literal(member, inner, language)},\n`
  );
  return `{\n${lines.join("")}${indent}}`;
}

function shownHeaders({ headers }: SampleRequest): [name: string, value: string][] {
  return Object.entries(headers).filter(([name]) => !OWN_HEADERS.has(name.toLowerCase()));
}

function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
