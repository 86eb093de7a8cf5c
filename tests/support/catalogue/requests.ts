/**
 * The catalogue: valid requests of every operation, in an order in which they succeed, because a
 * request can use resources that earlier ones made. The OpenAPI document shows them as examples, and
 * tests that concern every operation send them.
 */

import { APPROVED_CARD } from "../service/service.ts";

/** A request to an operation. */
export interface CatalogueRequest {
  operation: string;
  name: string;
  /** The words of the document; without them the document does not show the request. */
  summary?: string;
  /** A text that begins with `$` stands for the value that was saved under that name. */
  body?: Record<string, unknown>;
  query?: string;
  /** Name of the saved id that goes into the path. */
  of?: string;
  /** The idempotency key of the request, or for a GET the one in its path. */
  key?: string;
  /** Saves the id of the response, or of the first item of a list. */
  save?: string;
}

const EUR = { amount: 1999, currency: "EUR" };
const CARD = { ...EUR, capability: "card_payment", customer: { email: "ada@example.com" } };
const card = (number: string) => ({ card: { ...APPROVED_CARD, number } });
const forced = (outcome: string) => ({ amount_minor: 2500, currency: "EUR", outcome });
const NO_MATCH = { iban: "DE89 3704 0044 0532 0130 00", holder_name: "No match Ltd" };
const one = "limit=1";

/**
 * All requests. A run begins with two saved values: `url`, a URL that receives webhooks, and
 * `since`, a time before the run.
 */
export const CATALOGUE: readonly CatalogueRequest[] = [
  {
    operation: "createPayment",
    name: "card",
    summary: "A card that is approved (variant A)",
    body: { ...CARD, ...card("4242 4242 4242 4242") },
    save: "payment",
  },
  {
    operation: "createPayment",
    name: "card_variant_b",
    summary: "The same fields in variant B",
    body: {
      amount_minor: 4200,
      currency: "USD",
      method_kind: "card",
      payer: { email: "grace@example.com", name: "Grace Hopper" },
      ...card("5555 5555 5555 4444"),
      reference: "order-1001",
      metadata: { cart: "7f3a" },
    },
    save: "usd",
  },
  {
    operation: "createPayment",
    name: "three_d_secure",
    summary: "A card that needs 3-D Secure",
    body: { ...EUR, ...card("4000 0025 0000 3155") },
    save: "action",
  },
  {
    operation: "createPayment",
    name: "declined",
    summary: "A card that is declined: 402",
    body: { ...EUR, ...card("4000 0000 0000 0002") },
  },
  {
    operation: "createPayment",
    name: "insufficient_funds",
    summary: "A card without funds: 402",
    body: { ...EUR, ...card("4000 0000 0000 9995") },
  },
  {
    operation: "createPayment",
    name: "sepa",
    summary: "SEPA",
    body: { ...EUR, method_kind: "sepa", iban: { iban: "DE89 3704 0044 0532 0130 00" } },
    save: "sepa",
  },
  {
    operation: "createPayment",
    name: "sepa_return",
    summary: "SEPA, returned by the bank with R01",
    body: { ...EUR, iban: "DE00 0000 0000 0000 0000 99" },
    save: "failed",
  },
  {
    operation: "createPayment",
    name: "swift",
    summary: "SWIFT with manual settlement",
    body: { ...EUR, iban: "GB82 WEST 1234 5698 7654 32", settlement: "manual" },
    save: "swift",
  },
  {
    operation: "createPayment",
    name: "stablecoin",
    summary: "USDC on Base",
    body: {
      amount: 1_500_000,
      currency: "USDC",
      wallet: { address: "0x000000000000000000000000000000000000dEaD", network: "base" },
    },
  },
  {
    operation: "createPayment",
    name: "stablecoin_revert",
    summary: "USDC, reverted on chain",
    body: {
      amount: 1_500_000,
      currency: "USDC",
      wallet: "0x0000000000000000000000000000000000000BAD",
    },
  },
  {
    operation: "createPayment",
    name: "outcome",
    summary: "A forced outcome",
    body: { ...EUR, outcome: "pending" },
    save: "pending",
  },
  {
    operation: "createPayment",
    name: "token",
    summary: "A token of a card, and the page to which the payer comes back",
    body: {
      ...EUR,
      card: { token: "pm_card_visa" },
      return_url: "https://shop.example/orders/1001",
    },
  },
  {
    operation: "createPayment",
    name: "manual_capture",
    summary: "Manual capture: `authorized` until you capture it",
    body: { ...EUR, card: { token: "pm_card_mastercard" }, capture: "manual" },
    save: "authorized",
  },
  {
    operation: "capturePayment",
    name: "part",
    summary: "Capture a part; the rest is released",
    of: "authorized",
    body: { amount: 1500 },
  },
  {
    operation: "createPayment",
    name: "manual_settlement",
    summary: "A card with manual settlement: its refunds wait for an advance",
    body: { ...EUR, card: { token: "pm_card_visa" }, settlement: "manual" },
    save: "waiting_payment",
  },
  {
    operation: "createPayment",
    name: "bank_transfer",
    summary: "A bank transfer that the payer sends",
    body: { ...EUR, method_kind: "sepa" },
    save: "bank_transfer",
  },
  {
    operation: "createPayment",
    name: "stablecoin_address",
    summary: "A stablecoin that the payer sends to an address",
    body: { amount: 5000000, currency: "USDC", capability: "stablecoin_payment" },
    save: "deposit",
  },
  { operation: "getPayment", name: "payment", summary: "A completed payment", of: "payment" },
  { operation: "listPayments", name: "page", summary: "A page of one", query: one },
  {
    operation: "cancelPayment",
    name: "cancelled",
    summary: "Cancel a pending payment",
    of: "pending",
  },
  {
    operation: "refundPayment",
    name: "part",
    summary: "Refund a part",
    of: "payment",
    body: { amount: 500, reason: "requested_by_customer" },
    save: "refund",
  },
  { operation: "refundPayment", name: "rest", summary: "Refund the rest", of: "payment", body: {} },
  {
    operation: "refundPayment",
    name: "no_match",
    summary: "To another payee, whose name does not match: it waits for an advance",
    of: "sepa",
    body: { amount: 700, destination: NO_MATCH },
    save: "pending_refund",
  },
  {
    operation: "advanceRefund",
    name: "completed",
    summary: "To `completed`",
    of: "pending_refund",
    body: { to: "completed" },
  },
  {
    operation: "refundPayment",
    name: "pending",
    summary: "A refund that waits for an advance",
    of: "waiting_payment",
    body: { amount: 300 },
    save: "failing_refund",
  },
  {
    operation: "advanceRefund",
    name: "failed",
    summary: "To `failed`",
    of: "failing_refund",
    body: { to: "failed" },
  },
  { operation: "getRefund", name: "refund", summary: "A refund", of: "refund" },
  { operation: "listRefunds", name: "page", summary: "A page of one", query: one },
  {
    operation: "listPaymentRefunds",
    name: "page",
    summary: "A page of one",
    of: "payment",
    query: one,
  },
  {
    operation: "createSandboxPayment",
    name: "success",
    summary: "A completed payment",
    body: forced("success"),
    save: "funds",
  },
  {
    operation: "createSandboxPayment",
    name: "declined",
    summary: "A declined payment, which also gets 201",
    body: forced("declined"),
  },
  {
    operation: "createSandboxPayment",
    name: "chargeback",
    summary: "A payment with a chargeback",
    body: forced("chargeback"),
  },
  {
    operation: "createPayment",
    name: "disputed",
    summary: "A card that is disputed as soon as the payment completes",
    body: { ...EUR, card: { token: "pm_card_createDispute" } },
    save: "disputed",
  },
  {
    operation: "listDisputes",
    name: "page",
    summary: "A page of one",
    query: one,
    save: "dispute",
  },
  { operation: "getDispute", name: "dispute", summary: "A dispute", of: "dispute" },
  {
    operation: "submitEvidence",
    name: "saved",
    summary: "Evidence that is only saved",
    of: "dispute",
    body: { text: "Delivered on 2 March, tracking number 00340434", submit: false },
  },
  {
    operation: "submitEvidence",
    name: "under_review",
    summary: "Submitted evidence",
    of: "dispute",
    body: { text: "Delivered on 2 March, tracking number 00340434" },
  },
  {
    operation: "acceptDispute",
    name: "lost",
    summary: "A dispute that is given up",
    of: "dispute",
  },
  {
    operation: "listDisputes",
    name: "open",
    summary: "Disputes that wait for evidence",
    query: "status=needs_response&limit=1",
    save: "open_dispute",
  },
  {
    operation: "submitEvidence",
    name: "won",
    summary: "Winning evidence in the sandbox",
    of: "open_dispute",
    body: { text: "winning_evidence" },
  },
  {
    operation: "advancePayment",
    name: "received",
    summary: "A part of a stablecoin has arrived",
    of: "deposit",
    body: { to: "processing", amount_received: 2000000 },
  },
  {
    operation: "advancePayment",
    name: "booked",
    summary: "The bank books a part of a bank transfer",
    of: "bank_transfer",
    body: { to: "pending", amount_received: 1000 },
  },
  {
    operation: "advancePayment",
    name: "reorganised",
    summary: "The chain has undone the transfers",
    of: "deposit",
    body: { to: "pending" },
  },
  {
    operation: "advancePayment",
    name: "processing",
    summary: "To `processing`",
    of: "swift",
    body: { to: "processing" },
  },
  {
    operation: "advancePayment",
    name: "completed",
    summary: "To `completed`",
    of: "swift",
    body: { to: "completed" },
  },
  {
    operation: "advanceSandboxPayment",
    name: "refunded",
    summary: "To `refunded`",
    of: "usd",
    body: { to: "refunded" },
  },
  {
    operation: "authenticatePayment",
    name: "success",
    summary: "The payer succeeds",
    of: "action",
    body: { result: "success" },
  },
  {
    operation: "createTransfer",
    name: "iban",
    summary: "To a bank account",
    body: {
      amount: 700,
      currency: "EUR",
      destination: { iban: "DE89 3704 0044 0532 0130 00" },
      description: "Payout 7",
    },
    save: "transfer",
  },
  {
    operation: "createTransfer",
    name: "wallet",
    summary: "To a wallet",
    body: {
      amount: 250_000,
      currency: "USDC",
      destination: { wallet: "0x000000000000000000000000000000000000dEaD" },
    },
  },
  {
    operation: "createTransfer",
    name: "returned",
    summary: "To a bank account whose bank returns the money",
    body: { amount: 100, currency: "EUR", destination: { iban: "DE00 0000 0000 0000 0000 99" } },
  },
  {
    operation: "createTransfer",
    name: "no_match",
    summary: "To a payee whose name does not match: pending until you advance it",
    body: { amount: 300, currency: "EUR", destination: NO_MATCH },
    save: "waiting",
  },
  {
    operation: "advanceTransfer",
    name: "completed",
    summary: "To `completed`",
    of: "waiting",
    body: { to: "completed" },
  },
  {
    operation: "createTransfer",
    name: "manual",
    summary: "Manual settlement, which you can cancel",
    body: {
      amount: 300,
      currency: "EUR",
      destination: { iban: "DE89 3704 0044 0532 0130 00" },
      settlement: "manual",
    },
    save: "waiting_again",
  },
  {
    operation: "cancelTransfer",
    name: "cancelled",
    summary: "Cancel a pending transfer",
    of: "waiting_again",
  },
  { operation: "getTransfer", name: "transfer", summary: "A transfer", of: "transfer" },
  {
    operation: "deleteTransferBankDetails",
    name: "deleted",
    summary: "Delete the bank details of a transfer",
    of: "transfer",
  },
  {
    operation: "deletePaymentBankDetails",
    name: "deleted",
    summary: "Delete the bank details of a payment",
    of: "sepa",
  },
  { operation: "listTransfers", name: "page", summary: "A page of one", query: one },
  { operation: "listLedgerEntries", name: "page", summary: "A page of two", query: "limit=2" },
  { operation: "getBalance", name: "balance", summary: "Balances in three currencies" },
  {
    operation: "createApiKey",
    name: "scoped",
    summary: "A key with read scopes",
    body: { name: "Reports", scopes: ["payments:read", "ledger:read"] },
    save: "api_key",
  },
  {
    operation: "createSandbox",
    name: "pull_request",
    summary: "A sandbox for a pull request, which ends after an hour",
    body: { name: "PR 17", expires_in: 3600 },
    save: "sandbox",
  },
  { operation: "getSandbox", name: "sandbox", summary: "A sandbox", of: "sandbox" },
  { operation: "listSandboxes", name: "page", summary: "A page of one", query: one },
  { operation: "deleteSandbox", name: "deleted", summary: "A deleted sandbox", of: "sandbox" },
  { operation: "getApiKey", name: "key", summary: "A key", of: "api_key" },
  { operation: "listApiKeys", name: "page", summary: "A page of one", query: one },
  {
    operation: "rotateApiKey",
    name: "overlap",
    summary: "The older secret works for one more hour",
    of: "api_key",
    body: { expires_in: 3600 },
  },
  { operation: "revokeApiKey", name: "revoked", summary: "A revoked key", of: "api_key" },
  {
    operation: "createPayment",
    name: "idempotent",
    summary: "With an idempotency key",
    body: { ...EUR, reference: "order-1002" },
    key: "order-1002",
  },
  {
    operation: "getIdempotencyKey",
    name: "first_request",
    summary: "The first request of an idempotency key",
    key: "order-1002",
  },
  {
    operation: "listRequests",
    name: "page",
    summary: "The requests with an idempotency key",
    query: "limit=1&idempotency_key=order-1002",
    save: "request",
  },
  { operation: "getRequest", name: "request", summary: "A request with its bodies", of: "request" },
  {
    operation: "createWebhookEndpoint",
    name: "some",
    summary: "An endpoint for some event types",
    body: {
      url: "https://example.com/webhooks",
      events: ["payment.*", "refund.completed"],
      description: "Orders",
    },
    save: "endpoint",
  },
  { operation: "getWebhookEndpoint", name: "endpoint", summary: "An endpoint", of: "endpoint" },
  { operation: "listWebhookEndpoints", name: "page", summary: "A page of one", query: one },
  {
    operation: "updateWebhookEndpoint",
    name: "disable",
    summary: "Disable an endpoint",
    of: "endpoint",
    body: { status: "disabled" },
  },
  {
    operation: "rotateWebhookSecret",
    name: "overlap",
    summary: "The older secret also signs for 24 hours",
    of: "endpoint",
    body: { expires_in: 86_400 },
  },
  {
    // It gets only triggered events, so the dispatcher sends nothing.
    operation: "createWebhookEndpoint",
    name: "receiver",
    body: { url: "$url", events: ["ping"] },
    save: "receiver",
  },
  {
    operation: "triggerWebhook",
    name: "completed",
    summary: "A payment was completed",
    body: { endpoint_id: "$receiver", event: "payment.completed", payment_id: "$payment" },
    save: "delivery",
  },
  {
    operation: "triggerWebhook",
    name: "ping",
    summary: "A ping",
    body: { endpoint_id: "$receiver", event: "ping", payment_id: "$payment" },
  },
  {
    operation: "triggerWebhook",
    name: "disabled",
    summary: "An endpoint was disabled",
    body: {
      endpoint_id: "$receiver",
      event: "webhook_endpoint.disabled",
      payment_id: "$payment",
    },
  },
  {
    operation: "createWebhookEndpoint",
    name: "inbox",
    summary: "An endpoint without a URL, whose deliveries you read",
    body: { delivery: "inbox", events: ["payment.completed"] },
    save: "inbox",
  },
  {
    operation: "triggerWebhook",
    name: "inbox",
    summary: "A payment was completed, for an inbox",
    body: { endpoint_id: "$inbox", event: "payment.completed", payment_id: "$payment" },
  },
  {
    operation: "readInbox",
    name: "one",
    summary: "The first delivery of an inbox",
    of: "inbox",
    query: "limit=1",
  },
  {
    operation: "recoverDeliveries",
    name: "all",
    summary: "Every delivery since a time",
    of: "inbox",
    body: { since: "$since", status: "all" },
  },
  {
    operation: "getWebhookDelivery",
    name: "delivered",
    summary: "A delivery that succeeded",
    of: "delivery",
  },
  { operation: "listWebhookDeliveries", name: "page", summary: "A page of one", query: one },
  {
    operation: "redeliverWebhook",
    name: "pending",
    summary: "The delivery is pending again",
    of: "delivery",
  },
  { operation: "listEvents", name: "page", summary: "A page of one", query: one, save: "event" },
  { operation: "getEvent", name: "event", summary: "An event", of: "event" },
  {
    operation: "deleteWebhookEndpoint",
    name: "deleted",
    summary: "A deleted endpoint",
    of: "endpoint",
  },
  {
    operation: "createFault",
    name: "lost_response",
    summary: "The response of the next refund is lost",
    body: {
      on: "request",
      fault: "server_error_after",
      where: { method: "POST", path: "/v1/payments/{id}/refund" },
    },
    save: "fault",
  },
  {
    operation: "createFault",
    name: "late_webhooks",
    summary: "The next three events of completed payments arrive 2 seconds later",
    body: {
      on: "delivery",
      fault: "delay",
      delay_ms: 2000,
      times: 3,
      where: { event_type: "payment.completed" },
    },
    save: "declared",
  },
  {
    operation: "createFault",
    name: "provider_timeout",
    summary: "The provider does not respond to the next payment by card",
    body: {
      on: "provider",
      fault: "timeout",
      where: { method_kind: "card", operation: "authorize" },
    },
  },
  { operation: "listFaults", name: "page", summary: "A page of one item", query: one },
  { operation: "getFault", name: "fault", summary: "A declared fault", of: "fault" },
  { operation: "deleteFault", name: "deleted", summary: "Deleted", of: "fault" },
  { operation: "resetSandbox", name: "reset", summary: "The numbers of deleted resources" },
  { operation: "getClock", name: "real", summary: "The real clock" },
  {
    operation: "setClock",
    name: "advance",
    summary: "A week later, and frozen",
    body: { advance: 604_800, mode: "frozen" },
  },
  { operation: "setClock", name: "real", summary: "The clock runs again", body: { mode: "real" } },
];
