/** The error codes of the API (contract §6). */

/** The HTTP status and the type of every error code of the API. */
export const ERROR_CODES = {
  invalid_parameter: { status: 400, type: "invalid_request" },
  invalid_json: { status: 400, type: "invalid_request" },
  unauthorized: { status: 401, type: "authentication" },
  payment_declined: { status: 402, type: "payment" },
  insufficient_funds: { status: 402, type: "payment" },
  aml_blocked: { status: 402, type: "payment" },
  authentication_failed: { status: 402, type: "payment" },
  balance_insufficient: { status: 402, type: "payment" },
  test_key_required: { status: 403, type: "permission" },
  permission_denied: { status: 403, type: "permission" },
  origin_not_allowed: { status: 403, type: "permission" },
  not_found: { status: 404, type: "invalid_request" },
  method_not_allowed: { status: 405, type: "invalid_request" },
  idempotency_conflict: { status: 409, type: "idempotency" },
  idempotency_in_progress: { status: 409, type: "idempotency" },
  invalid_state: { status: 409, type: "invalid_request" },
  payload_too_large: { status: 413, type: "invalid_request" },
  unsupported_media_type: { status: 415, type: "invalid_request" },
  rate_limited: { status: 429, type: "rate_limit" },
  internal_error: { status: 500, type: "api" },
  service_unavailable: { status: 503, type: "api" },
  provider_not_configured: { status: 503, type: "api" },
} as const;

/** The code of an error. A newer version of the service can send codes that are not listed here. */
export type ErrorCode = keyof typeof ERROR_CODES;
/** The type of an error, which groups codes. */
export type ErrorType = typeof ERROR_CODES[ErrorCode]["type"];
/** Codes of errors that contain a payment, which the API has stored as `declined`. */
export type DeclineCode =
  | "payment_declined"
  | "insufficient_funds"
  | "aml_blocked"
  | "authentication_failed";
