/**
 * Lists of the wire contract that several folders need: statuses, event types, method kinds,
 * outcomes and reasons (contract §2 to §4). The schemas validate with them, the console imports
 * them, and `deno task generate` writes them into the client and the documents (ADR 0011). This
 * module imports nothing, so that the bundle of the console stays small.
 */

/** Every status of a payment, in the order of the lifecycle. */
export const PAYMENT_STATUSES = [
  "pending",
  "requires_action",
  "processing",
  "authorized",
  "completed",
  "declined",
  "failed",
  "cancelled",
  "partially_refunded",
  "refunded",
  "chargeback",
] as const;

/** Statuses of a payment that no other status can follow, whatever the rail. */
export const FINAL_PAYMENT_STATUSES = [
  "declined",
  "failed",
  "cancelled",
  "refunded",
] as const satisfies readonly (typeof PAYMENT_STATUSES[number])[];

/** Every kind of payment method, as variant B names it. */
export const METHOD_KINDS = ["card", "sepa", "swift", "stablecoin"] as const;

/** How an instrument that a payment saves can be used: with the payer present, or also without. */
export const INSTRUMENT_USAGES = ["on_session", "off_session"] as const;

/** Every status of an instrument. `failed` and `ended` are final. */
export const INSTRUMENT_STATUSES = ["pending", "active", "failed", "ended"] as const;

export const INSTRUMENT_END_REASONS = [
  "deleted",
  "erased",
  "revoked",
  "account_closed",
  "used_up",
  "idle",
  "removed_at_provider",
] as const;

/** The kinds of payment methods that a payment can save. */
export const KEPT_METHOD_KINDS = [
  "card",
  "sepa",
] as const satisfies readonly (typeof METHOD_KINDS[number])[];

/** Every status of a checkout. `open` becomes `expired` by its time. */
export const CHECKOUT_STATUSES = ["open", "completed", "expired", "cancelled"] as const;

/** The ways in which a checkout can be paid: by SEPA a collection, or a transfer of the payer. */
export const CHECKOUT_METHODS = ["card", "sepa_debit", "sepa", "swift", "stablecoin"] as const;

/** The place of a payment by SEPA among those that are collected under its mandate. */
export const MANDATE_SEQUENCES = ["first", "recurring", "final", "one_off"] as const;

/** Results that a sandbox create can force (contract §2). */
export const OUTCOMES = ["success", "declined", "pending", "refunded", "chargeback"] as const;

export const REFUND_REASONS = [
  "duplicate",
  "fraudulent",
  "requested_by_customer",
  "other",
] as const;

export const REFUND_STATUSES = ["pending", "completed", "failed"] as const;

/** Every result of the bank's verification of a payee. */
export const PAYEE_CHECKS = [
  "match",
  "close_match",
  "no_match",
  "unavailable",
  "pending",
] as const;

/** The results with which a payout waits until an operator approves it. */
export const CHECKS_TO_APPROVE = [
  "close_match",
  "no_match",
  "unavailable",
] as const satisfies readonly (typeof PAYEE_CHECKS[number])[];

export const DISPUTE_REASONS = [
  "fraudulent",
  "product_not_received",
  "duplicate",
  "general",
] as const;

/** Every status of a dispute. `won` and `lost` are final. */
export const DISPUTE_STATUSES = ["needs_response", "under_review", "won", "lost"] as const;

/** Ways in which a payment by card is captured. */
export const CAPTURE_METHODS = ["automatic", "manual"] as const;

/** Networks that a wallet may name (contract §2). */
export const NETWORKS = [
  "ethereum",
  "base",
  "polygon",
  "arbitrum",
  "optimism",
  "solana",
  "tron",
] as const;

export const TRANSFER_STATUSES = ["pending", "completed", "failed", "cancelled"] as const;

/** Every status of a delivery. An `available` one waits in an inbox for its receiver. */
export const DELIVERY_STATUSES = [
  "pending",
  "available",
  "delivered",
  "failed",
  "cancelled",
] as const;

/** Ways in which an endpoint gets events: the service sends them, or the receiver reads them. */
export const ENDPOINT_DELIVERIES = ["url", "inbox"] as const;

/** Every status of a webhook endpoint. A disabled endpoint gets no events. */
export const ENDPOINT_STATUSES = ["enabled", "disabled"] as const;

/** Event types that show a payment: its creation, and each status that it gets later. */
export const PAYMENT_EVENT_TYPES = [
  "payment.created",
  ...PAYMENT_STATUSES.map((status) => `payment.${status}` as const),
] as const;

export const REFUND_EVENT_TYPES = [
  "refund.created",
  "refund.updated",
  "refund.completed",
  "refund.failed",
] as const;

export const DISPUTE_EVENT_TYPES = [
  "dispute.created",
  "dispute.updated",
  "dispute.won",
  "dispute.lost",
] as const;

export const TRANSFER_EVENT_TYPES = [
  "transfer.created",
  "transfer.updated",
  "transfer.completed",
  "transfer.failed",
  "transfer.cancelled",
] as const;

export const ENDPOINT_EVENT_TYPES = ["webhook_endpoint.disabled", "ping"] as const;

export const INSTRUMENT_EVENT_TYPES = ["instrument.updated", "instrument.ended"] as const;

export const EVENT_TYPES = [
  ...PAYMENT_EVENT_TYPES,
  ...REFUND_EVENT_TYPES,
  ...DISPUTE_EVENT_TYPES,
  ...TRANSFER_EVENT_TYPES,
  ...INSTRUMENT_EVENT_TYPES,
  ...ENDPOINT_EVENT_TYPES,
] as const;

/** Patterns that stand for several event types in the list of an endpoint. */
export const EVENT_PATTERNS = [
  "*",
  "payment.*",
  "refund.*",
  "dispute.*",
  "transfer.*",
  "instrument.*",
  "webhook_endpoint.*",
] as const;

export const FAULT_KINDS = ["request", "delivery", "provider"] as const;

/** The header of a request that asks for a fault, and of a response or delivery that has one. */
export const FAULT_HEADER = "Sandbox-Fault";
/** Tells that a response is the stored one of an earlier request. */
export const REPLAYED_HEADER = "Idempotent-Replayed";

/** Faults of each kind of target, in the order of the contract (§7). */
export const FAULTS = {
  request: [
    "rate_limited",
    "service_unavailable",
    "server_error_before",
    "server_error_after",
    "connection_lost_after",
    "delay",
  ],
  delivery: ["duplicate", "delay", "reorder", "wrong_signature", "drop_until_recovered"],
  provider: ["timeout", "declined", "failed"],
} as const satisfies Record<typeof FAULT_KINDS[number], readonly string[]>;

/** Every fault. `delay` concerns requests and deliveries. */
export const FAULT_NAMES = [
  ...FAULTS.request,
  ...FAULTS.delivery.filter((fault) => fault !== "delay"),
  ...FAULTS.provider,
] as const;

export const FAULT_CONDITIONS = {
  request: ["method", "path", "idempotency_key"],
  delivery: ["endpoint_id", "event_type"],
  provider: ["method_kind", "operation"],
} as const satisfies Record<typeof FAULT_KINDS[number], readonly string[]>;

/** Operations of the simulated provider that a fault can concern. */
export const PROVIDER_OPERATIONS = [
  "authorize",
  "capture",
  "cancel",
  "refund",
  "transfer",
] as const;

export const REQUEST_METHODS = ["GET", "POST", "PUT", "DELETE"] as const;

/** Scopes of an API key: each permits a group of operations. */
export const SCOPES = [
  "payments:read",
  "payments:write",
  "refunds:write",
  "transfers:read",
  "transfers:write",
  "webhooks:read",
  "webhooks:write",
  "events:read",
  "ledger:read",
  "instruments:use",
  "instruments:write",
  "customers:erase",
  "keys:write",
  "sandbox:write",
] as const;
