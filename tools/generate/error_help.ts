/** Explanations of the error codes, for docs/errors.md and the OpenAPI document. */

import type { ErrorCode } from "../../shared/core/errors.ts";

interface ErrorHelp {
  /** The cause of the error: a clause without a full stop. */
  when: string;
  /** The actions of the caller that help: sentences. */
  remedy: string;
}

export const ERROR_HELP: Readonly<Record<ErrorCode, ErrorHelp>> = {
  invalid_parameter: {
    when: "a field, parameter or header is wrong: `param` names it",
    remedy: "Correct the value that `param` names, and send the request again. A name that the " +
      "operation does not have, such as `crad` or `capture_method`, is refused too: the message says " +
      "what to send.",
  },
  invalid_json: {
    when: "the body is not one strict JSON object",
    remedy: "Correct the JSON, and send the request again. A repeated name, a comma before a " +
      "closing bracket, and integers beyond 2^53 are refused. `param` names the place if it is known.",
  },
  unauthorized: {
    when: "the key is missing, malformed, unknown, revoked or expired",
    remedy: "Send the header `Authorization: Bearer <API_KEY>`. The message says whether the " +
      "header is missing, has another scheme than Bearer, contains a text that is not a key, or " +
      "contains a key without access. Unknown, revoked and expired keys get the same response.",
  },
  payment_declined: {
    when: "the issuer declined the payment",
    remedy:
      "Do as `advice` says: in the sandbox ask the payer for another card. `payment` is the " +
      "stored payment.",
  },
  insufficient_funds: {
    when: "the card has insufficient funds",
    remedy:
      "Do as `advice` says: in the sandbox try the same card again in hours or days, with a " +
      "new payment. `payment` is the stored payment.",
  },
  aml_blocked: {
    when: "the payment was blocked by fraud and money-laundering checks",
    remedy:
      "Do as `advice` says: in the sandbox do not try the card again. `payment` is the stored " +
      "payment.",
  },
  authentication_failed: {
    when: "the payer failed to authenticate",
    remedy: "`advice` is `authenticate`: create a new payment, and let the payer authenticate " +
      "again. `payment` is the stored payment.",
  },
  authentication_required: {
    when: "the issuer wants the payer to authenticate, and the payment has `off_session`",
    remedy:
      "`advice` is `authenticate`: ask the payer to come back, and create a new payment by the " +
      "same `instrument` with a `return_url`. `payment` is the stored payment.",
  },
  provider_refused: {
    when: "the provider has refused the request, and nothing has happened there",
    remedy: "Read the message. A payment is `failed` with this `failure_code`, and the error " +
      "contains it in `payment`. A capture or cancel has changed nothing. Repeat the request with " +
      "a new Idempotency-Key once the cause is gone.",
  },
  balance_insufficient: {
    when: "the amount is more than the available balance",
    remedy: "Send a smaller amount, or wait for payments in this currency. `GET /v1/balance` " +
      "shows the balance of the account `available`.",
  },
  test_key_required: {
    when: "the operation takes test keys only",
    remedy: "Use a test key, whose text contains `_test_`.",
  },
  permission_denied: {
    when: "the key lacks a scope: `required_scope`",
    remedy: "Use a key that has the scope, or create one. A key cannot create a key with more " +
      "scopes or a longer life than its own.",
  },
  origin_not_allowed: {
    when: "the origin of a web page is not on the list, or the page sent a live key",
    remedy: "`CONSOLE_ORIGINS`, a setting of the operator, lists the origins that may call. Live " +
      "keys belong on a server.",
  },
  not_found: {
    when: "there is no such resource in the key's environment",
    remedy: "Check the id and the path. An id of another environment, such as a live id with a " +
      "test key, gets the same response as an unknown one. If the path itself is wrong, the " +
      "message names the nearest path.",
  },
  method_not_allowed: {
    when: "the path takes other methods: see the header `Allow`",
    remedy: "Use one of the methods in the header `Allow`.",
  },
  idempotency_conflict: {
    when: "the `Idempotency-Key` was used with a different request",
    remedy:
      "Send the first request again unchanged to get its response, or use a new key for a new " +
      "operation.",
  },
  idempotency_in_progress: {
    when: "a request with this `Idempotency-Key`, or an earlier change of this payment, is still " +
      "under way",
    remedy: "Send the same request with the same key again after `Retry-After` seconds.",
  },
  invalid_state: {
    when: "the status of the resource does not allow it: see `current_status` and `allowed`",
    remedy:
      "`current_status` is the status of the resource, and `allowed` lists the statuses that " +
      "can follow it.",
  },
  payload_too_large: {
    when: "the body is larger than 64 KiB",
    remedy: "Send a smaller body.",
  },
  unsupported_media_type: {
    when: "the body is not `application/json`",
    remedy: "Send the header `Content-Type: application/json`, and no `Content-Encoding`.",
  },
  rate_limited: {
    when: "the caller sends too many requests, the sandbox has too many pending deliveries or " +
      "resets, or the sandboxes of the account store too much",
    remedy: "Send the request again after `Retry-After` seconds, and send fewer at a time. The " +
      "header `RateLimit` shows the number of requests that are left. If the message names pending " +
      "deliveries, let the endpoints receive them, disable an endpoint, or reset the sandbox. If it " +
      "names storage, reset a sandbox or end disposable ones.",
  },
  internal_error: {
    when: "the service has an internal error",
    remedy:
      "Send the same request with the same `Idempotency-Key` again. If it fails again, give " +
      "the `request_id` to the operator.",
  },
  service_unavailable: {
    when: "the service is briefly unavailable",
    remedy: "Send the same request with the same `Idempotency-Key` again after `Retry-After` " +
      "seconds.",
  },
  provider_not_configured: {
    when: "no provider takes live payments of this method",
    remedy: "Use a test key, or let the operator add an account at a provider with " +
      "`deno task providers add`. Nothing is stored, so the same request works after that.",
  },
};
