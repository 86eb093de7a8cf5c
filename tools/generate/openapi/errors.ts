/**
 * Builds `components.responses`, the errors. The method, paths and table entry of an operation
 * determine its codes. Each set of codes of one status is a response. The codes of a response are
 * the names of its examples.
 */

import { ERROR_CATALOGUE, type ErrorCode } from "../../../shared/core/errors.ts";
import type { Route } from "../../../shared/http/route.ts";
import { ERROR_CODES, ErrorBody } from "../../../shared/schema/error.ts";
import { causeOf } from "../error_help.ts";
import { errorExampleName } from "./examples.ts";
import { headerRefs, WITH_KEY } from "./headers.ts";
import { type Json, schemaRef } from "./schemas.ts";

const TITLES: Record<number, string> = {
  400: "BadRequest",
  401: "Unauthorized",
  402: "PaymentRequired",
  403: "Forbidden",
  404: "NotFound",
  405: "MethodNotAllowed",
  409: "Conflict",
  413: "PayloadTooLarge",
  415: "UnsupportedMediaType",
  429: "TooManyRequests",
  500: "InternalError",
  503: "ServiceUnavailable",
};

const COMMON: readonly ErrorCode[] = [
  "invalid_parameter",
  "unauthorized",
  // A live key with the header `Sandbox-Fault`, or at an operation of the sandbox.
  "test_key_required",
  "permission_denied",
  "origin_not_allowed",
  "rate_limited",
  "internal_error",
  "service_unavailable",
];

/** Further codes that an operation with a body can return. */
const WITH_BODY: readonly ErrorCode[] = [
  "invalid_json",
  "payload_too_large",
  "unsupported_media_type",
  "idempotency_conflict",
  "idempotency_in_progress",
];

const responses = new Map<string, Json>();

export function errorResponses(operation: Route): Record<string, Json> {
  return errorRefs([
    ...COMMON,
    ...(operation.method === "GET" ? [] : WITH_BODY),
    ...(operation.paths[0].includes(":id") ? ["not_found" as const] : []),
    ...(operation.errors ?? []),
  ]);
}

/** References to the responses of these codes, by status. */
export function errorRefs(codes: readonly ErrorCode[]): Record<string, Json> {
  const by_status = Map.groupBy(
    ERROR_CODES.filter((code) => codes.includes(code)),
    (code) => ERROR_CATALOGUE[code].status,
  );
  return Object.fromEntries(
    [...by_status].map(([status, own]) => [String(status), responseRef(status, own)]),
  );
}

export function componentResponses(): Record<string, Json> {
  return Object.fromEntries([...responses].sort(([a], [b]) => a < b ? -1 : 1));
}

function responseRef(status: number, codes: readonly ErrorCode[]): Json {
  const name = responseName(status, codes);
  responses.set(name, response(codes));
  return { $ref: `#/components/responses/${name}` };
}

/**
 * Returns the status in words plus the additional codes if the set contains all common codes of the
 * status, or else its codes.
 */
function responseName(status: number, codes: readonly ErrorCode[]): string {
  const of_status = (list: readonly ErrorCode[]) =>
    list.filter((code) => ERROR_CATALOGUE[code].status === status);
  if (of_status(ERROR_CODES).length === 1) return TITLES[status]!;
  const with_body = of_status([...COMMON, ...WITH_BODY]);
  if (with_body.some((code) => !codes.includes(code))) return codes.map(pascalCase).join("");
  const extra = codes.filter((code) => !with_body.includes(code));
  return TITLES[status]! + extra.map(pascalCase).join("");
}

function response(codes: readonly ErrorCode[]): Json {
  return {
    description: codes.map((code) => `\`${code}\`: ${causeOf(code)}`).join("; "),
    headers: headerRefs([
      ...WITH_KEY,
      ...(codes.some(isKept) ? ["Idempotent-Replayed"] : []),
      ...(codes.includes("unauthorized") ? ["WWW-Authenticate"] : []),
      ...(codes.some(waits) ? ["Retry-After"] : []),
    ]),
    content: {
      "application/json": {
        schema: schemaRef(ErrorBody),
        examples: Object.fromEntries(
          codes.map((code) => [code, { $ref: `#/components/examples/${errorExampleName(code)}` }]),
        ),
      },
    },
  };
}

/** Whether responses with the code are stored for replays: they decide about a resource. */
function isKept(code: ErrorCode): boolean {
  return ERROR_CATALOGUE[code].type === "payment" || code === "invalid_state";
}

/** Whether responses with the code have `Retry-After`. */
function waits(code: ErrorCode): boolean {
  return ["rate_limited", "service_unavailable", "idempotency_in_progress"].includes(code);
}

function pascalCase(code: string): string {
  return code.replace(/(?:^|_)(\w)/g, (_, letter) => letter.toUpperCase());
}
