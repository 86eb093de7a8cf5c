/** Builds `components.headers`: the headers of responses. */

import { FAULT_NAMES } from "../../../shared/core/vocabulary.ts";
import type { Json } from "./schemas.ts";

const HEADERS: Readonly<Record<string, { description: string; required?: true; schema: Json }>> = {
  "Request-Id": {
    description:
      "The id of this request. Give it to the operator when you ask for help. Errors repeat it",
    required: true,
    schema: { type: "string", pattern: "^req_[0-9a-hjkmnp-tv-z]{26}$" },
  },
  "Cache-Control": {
    description: "No cache may store the response",
    required: true,
    schema: { const: "no-store" },
  },
  "Document-Cache-Control": {
    description: "The time for which clients may use the document without a new request",
    schema: { type: "string" },
  },
  "X-Content-Type-Options": {
    description: "Browsers must not guess another type than `Content-Type`",
    required: true,
    schema: { const: "nosniff" },
  },
  "RateLimit-Policy": {
    description: "If the rate is limited: the quota `q` for each window of `w` seconds",
    schema: { type: "string", pattern: '^"default";q=\\d+;w=\\d+$' },
  },
  "RateLimit": {
    description:
      "If the rate is limited: the remaining requests (`r`), and the seconds until more (`t`)",
    schema: { type: "string", pattern: '^"default";r=\\d+;t=\\d+$' },
  },
  "Idempotent-Replayed": {
    description: "This is the response to an earlier request with the same `Idempotency-Key`",
    schema: { const: "true" },
  },
  "Sandbox-Fault": {
    description: "The declared fault of the sandbox that has decided this response",
    schema: { enum: [...FAULT_NAMES] },
  },
  "Location": {
    description: "URL of the new resource",
    required: true,
    schema: { type: "string", format: "uri" },
  },
  "Retry-After": {
    description: "Seconds to wait before the next try",
    schema: { type: "string", pattern: "^[1-9]\\d*$" },
  },
  "WWW-Authenticate": {
    description: "The authentication scheme",
    required: true,
    schema: { const: "Bearer" },
  },
  "ETag": {
    description: "Identifies this version of the document",
    required: true,
    schema: { type: "string" },
  },
};

export const EVERY_RESPONSE = ["Request-Id", "Cache-Control", "X-Content-Type-Options"] as const;
/** Headers of every response to a request with a key. */
export const WITH_KEY = [
  ...EVERY_RESPONSE,
  "RateLimit-Policy",
  "RateLimit",
  "Sandbox-Fault",
];

export function componentHeaders(): Record<string, Json> {
  return Object.fromEntries(
    Object.entries(HEADERS).map(([name, header]) => [
      componentName(name),
      { ...header, schema: { type: "string", ...header.schema } },
    ]),
  );
}

/** The headers of a response, by reference. */
export function headerRefs(names: readonly string[]): Record<string, Json> {
  return Object.fromEntries(
    names.map((name) => [name, { $ref: `#/components/headers/${componentName(name)}` }]),
  );
}

function componentName(name: string): string {
  return name.replaceAll("-", "");
}
