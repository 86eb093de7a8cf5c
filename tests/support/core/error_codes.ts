/**
 * The error codes of the API, written by hand and not read from the code, so a changed status or
 * type fails a test.
 */

/** HTTP status and type of each code. */
export const CODES: Record<string, [status: number, type: string]> = {
  invalid_parameter: [400, "invalid_request"],
  invalid_json: [400, "invalid_request"],
  unauthorized: [401, "authentication"],
  payment_declined: [402, "payment"],
  insufficient_funds: [402, "payment"],
  aml_blocked: [402, "payment"],
  authentication_failed: [402, "payment"],
  authentication_required: [402, "payment"],
  provider_refused: [402, "payment"],
  balance_insufficient: [402, "payment"],
  test_key_required: [403, "permission"],
  permission_denied: [403, "permission"],
  origin_not_allowed: [403, "permission"],
  not_found: [404, "invalid_request"],
  method_not_allowed: [405, "invalid_request"],
  payload_too_large: [413, "invalid_request"],
  unsupported_media_type: [415, "invalid_request"],
  idempotency_conflict: [409, "idempotency"],
  idempotency_in_progress: [409, "idempotency"],
  invalid_state: [409, "invalid_request"],
  rate_limited: [429, "rate_limit"],
  internal_error: [500, "api"],
  service_unavailable: [503, "api"],
  provider_not_configured: [503, "api"],
};
