/**
 * The catalogue of error codes (contract §6), one row for each code, and `ApiError`, the class of
 * errors that become responses. `shared/domain/changes/error_body.ts` renders their bodies.
 */

/** HTTP status and `type` of each error code. */
export const ERROR_CATALOGUE = {
  invalid_parameter: { status: 400, type: "invalid_request" },
  invalid_json: { status: 400, type: "invalid_request" },
  unauthorized: { status: 401, type: "authentication" },
  payment_declined: { status: 402, type: "payment" },
  insufficient_funds: { status: 402, type: "payment" },
  aml_blocked: { status: 402, type: "payment" },
  authentication_failed: { status: 402, type: "payment" },
  authentication_required: { status: 402, type: "payment" },
  provider_refused: { status: 402, type: "payment" },
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
} as const satisfies Record<string, { status: number; type: string }>;

/** Every code an error body can carry. */
export type ErrorCode = keyof typeof ERROR_CATALOGUE;

/** Codes with which an issuer says no: the payment is stored as `declined`. */
export const DECLINE_CODES = [
  "payment_declined",
  "insufficient_funds",
  "aml_blocked",
  "authentication_failed",
  "authentication_required",
] as const satisfies readonly ErrorCode[];

/** A code with which an issuer says no. */
export type DeclineCode = typeof DECLINE_CODES[number];

/** The next steps that help after a decline (contract §2). */
export const DECLINE_ADVICE = [
  "retry_later",
  "use_another_method",
  "do_not_retry",
  "authenticate",
] as const;

/** The next step that helps after a decline. */
export type DeclineAdvice = typeof DECLINE_ADVICE[number];

/** The advice of each code, unless the provider gives its own. */
export const USUAL_ADVICE: Readonly<Record<DeclineCode, DeclineAdvice>> = {
  payment_declined: "use_another_method",
  insufficient_funds: "retry_later",
  aml_blocked: "do_not_retry",
  authentication_failed: "authenticate",
  authentication_required: "authenticate",
};

/**
 * Returns the URL of the explanation of a code.
 * @param docs_url URL of the documentation, without a slash at its end
 */
export function docUrl(docs_url: string, code: ErrorCode): string {
  return `${docs_url}/errors.html#${code}`;
}

/** Further members of an error body, besides type, code, message, request id and `doc_url`. */
interface ErrorDetails {
  /** The field at fault, as a path: `card.number`, `metadata.order`, `Idempotency-Key`. */
  param?: string;
  /** Other members, such as `current_status` or `allowed`. */
  [member: string]: unknown;
}

/** An error of the API. `renderError` makes its body. */
export class ApiError extends Error {
  override readonly name = "ApiError";

  /**
   * @param code a row of the catalogue
   * @param message for people: the fault and the remedy, without a period at the end
   * @param details further members of the body
   * @param headers further response headers, such as `Retry-After`
   */
  constructor(
    readonly code: ErrorCode,
    message: string,
    readonly details: ErrorDetails = {},
    readonly headers: Readonly<Record<string, string>> = {},
  ) {
    super(message);
  }

  get status(): number {
    return ERROR_CATALOGUE[this.code].status;
  }
}

/** Makes an error with `Retry-After: 1`, for a cause that is expected to pass by itself. */
export function tryAgain(code: ErrorCode, message: string): ApiError {
  return new ApiError(code, message, {}, { "Retry-After": "1" });
}

/** Makes the 503 for a database that does not respond, and for retries that are used up. */
export function serviceUnavailable(): ApiError {
  return tryAgain("service_unavailable", "The service is briefly unavailable: try again");
}

/** Makes a 400 that names the field at fault. */
export function invalidParameter(param: string, message: string, more: ErrorDetails = {}) {
  return new ApiError("invalid_parameter", message, { param, ...more });
}
