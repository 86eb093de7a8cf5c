/**
 * Statuses, event types, error codes and the other lists of the API (contract §2 to §6).
 * Written by "deno task generate" from shared/.
 */

/** Status of a payment. */
export type PaymentStatus =
  | "pending"
  | "requires_action"
  | "processing"
  | "authorized"
  | "completed"
  | "declined"
  | "failed"
  | "cancelled"
  | "partially_refunded"
  | "refunded"
  | "chargeback";

/** The kind of payment method. */
export type MethodKind = "card" | "sepa" | "swift" | "stablecoin";

/** The kind of payment method, under its other name: `card_payment` is `card`, and so on. */
export type Capability = "card_payment" | "sepa_payment" | "swift_payment" | "stablecoin_payment";

/** The capture of a payment by card: with the authorization, or later by `payments.capture`. */
export type CaptureMethod = "automatic" | "manual";

/** The place of a payment among those of its mandate. Nothing follows `final` and `one_off`. */
export type MandateSequence = "first" | "recurring" | "final" | "one_off";

/** A forced result of a sandbox payment. */
export type Outcome = "success" | "declined" | "pending" | "refunded" | "chargeback";

/** The time when the money moves: at once, or when you advance it. `manual` is for test keys. */
export type Settlement = "instant" | "manual";

/** The network of a wallet. */
export type Network = "ethereum" | "base" | "polygon" | "arbitrum" | "optimism" | "solana" | "tron";

/** The asset of a wallet. Each has 6 decimals: 1500000 is 1.5 USDC. */
export type Stablecoin = "USDC" | "USDT";

/** The code of a decline. The error has the payment, which is stored as `declined`. */
export type DeclineCode =
  | "payment_declined"
  | "insufficient_funds"
  | "aml_blocked"
  | "authentication_failed";

/** The next step that helps after a decline. `do_not_retry`: the method will be declined again. */
export type DeclineAdvice = "retry_later" | "use_another_method" | "do_not_retry" | "authenticate";

/** The reason why a payment, refund or transfer failed after it was accepted. */
export type FailureCode =
  | "bank_return"
  | "onchain_reverted"
  | "processing_failed"
  | "expired"
  | "underpaid"
  | "provider_refused";

/** Status of a refund. A `pending` one counts against the amount that can be refunded. */
export type RefundStatus = "pending" | "completed" | "failed";

/** The speed of a payout by SEPA: a transfer or a refund. */
export type Speed = "standard" | "instant";

/** The bank's comparison of a payee's name with the account. */
export type PayeeCheck = "match" | "close_match" | "no_match" | "unavailable" | "pending";

/** The reason of a refund. */
export type RefundReason = "duplicate" | "fraudulent" | "requested_by_customer" | "other";

/** Status of a dispute. `won` and `lost` are final. */
export type DisputeStatus = "needs_response" | "under_review" | "won" | "lost";

/** The reason of a dispute. */
export type DisputeReason = "fraudulent" | "product_not_received" | "duplicate" | "general";

/** Status of a transfer. */
export type TransferStatus = "pending" | "completed" | "failed" | "cancelled";

/** An account of the ledger. */
export type LedgerAccount =
  | "processor"
  | "available"
  | "chargebacks"
  | "in_transit"
  | "external"
  | "bank"
  | "unapplied"
  | "reserve";

/** A permission of a key. */
export type Scope =
  | "payments:read"
  | "payments:write"
  | "refunds:write"
  | "transfers:read"
  | "transfers:write"
  | "webhooks:read"
  | "webhooks:write"
  | "events:read"
  | "ledger:read"
  | "keys:write"
  | "sandbox:write";

/** The way in which an endpoint gets its events: the service sends them, or you read them. */
export type EndpointDelivery = "url" | "inbox";

/** Status of a webhook endpoint. */
export type EndpointStatus = "enabled" | "disabled";

/** The reason why an endpoint is disabled. `gone`: it returned 410. `failing`: it failed for 5 days. */
export type DisabledReason = "manual" | "gone" | "failing";

/** Status of a delivery. An `available` one is in an inbox and not acknowledged. */
export type DeliveryStatus = "pending" | "available" | "delivered" | "failed" | "cancelled";

/** The reason why an attempt got no response. */
export type AttemptError = "timeout" | "connection_failed" | "crashed";

/** An event type that shows a payment. */
export type PaymentEventType =
  | "payment.created"
  | "payment.pending"
  | "payment.requires_action"
  | "payment.processing"
  | "payment.authorized"
  | "payment.completed"
  | "payment.declined"
  | "payment.failed"
  | "payment.cancelled"
  | "payment.partially_refunded"
  | "payment.refunded"
  | "payment.chargeback";

/** An event type that shows a refund. */
export type RefundEventType =
  | "refund.created"
  | "refund.updated"
  | "refund.completed"
  | "refund.failed";

/** An event type that shows a dispute. */
export type DisputeEventType =
  | "dispute.created"
  | "dispute.updated"
  | "dispute.won"
  | "dispute.lost";

/** An event type that shows a transfer. */
export type TransferEventType =
  | "transfer.created"
  | "transfer.updated"
  | "transfer.completed"
  | "transfer.failed"
  | "transfer.cancelled";

/** An event type that shows a webhook endpoint. */
export type EndpointEventType = "webhook_endpoint.disabled" | "ping";

/** A declared fault of requests. After `server_error_after` and `connection_lost_after` the request is done. */
export type RequestFault =
  | "rate_limited"
  | "service_unavailable"
  | "server_error_before"
  | "server_error_after"
  | "connection_lost_after"
  | "delay";

/** A declared fault of webhook deliveries. */
export type DeliveryFault =
  | "duplicate"
  | "delay"
  | "reorder"
  | "wrong_signature"
  | "drop_until_recovered";

/** A declared fault of the sandbox's provider. */
export type ProviderFault = "timeout" | "declined" | "failed";

/** An operation of the sandbox's provider. */
export type ProviderOperation = "authorize" | "capture" | "cancel" | "refund" | "transfer";

/** The method of a request. */
export type RequestMethod = "GET" | "POST" | "PUT" | "DELETE";

/** A pattern that matches several event types. */
export type EventPattern =
  | "*"
  | "payment.*"
  | "refund.*"
  | "dispute.*"
  | "transfer.*"
  | "webhook_endpoint.*";

/** The HTTP status and type of every error code of the API. */
export const ERROR_CODES = {
  invalid_parameter: { status: 400, type: "invalid_request" },
  invalid_json: { status: 400, type: "invalid_request" },
  unauthorized: { status: 401, type: "authentication" },
  payment_declined: { status: 402, type: "payment" },
  insufficient_funds: { status: 402, type: "payment" },
  aml_blocked: { status: 402, type: "payment" },
  authentication_failed: { status: 402, type: "payment" },
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
} as const;

/** An error code. A newer service may send a code that is not listed here. */
export type ErrorCode = keyof typeof ERROR_CODES;
/** The type of an error. */
export type ErrorType = typeof ERROR_CODES[ErrorCode]["type"];
