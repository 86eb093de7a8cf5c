/**
 * The catalogue: valid requests of every operation, in an order in which they succeed, because a
 * request can use resources that earlier ones made. The OpenAPI document shows them as examples,
 * and tests that concern every operation send them.
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
  /** The idempotency key of the request, or without a body the one or the customer in its path. */
  key?: string;
  /** Saves the id of the response, or of the first item of a list. */
  save?: string;
}

const EUR = { amount: 1999, currency: "EUR" };
const CUSTOMER = { id: "customer-7", email: "ada@example.com" };
const CARD = { ...EUR, capability: "card_payment", customer: { email: "ada@example.com" } };
const card = (number: string) => ({ card: { ...APPROVED_CARD, number } });
const forced = (outcome: string) => ({ amount_minor: 2500, currency: "EUR", outcome });
const NO_MATCH = { iban: "DE89 3704 0044 0532 0130 00", holder_name: "No match Ltd" };
const one = "limit=1";

function request(
  operation: string,
  name: string,
  summary: string | null,
  parts: Omit<CatalogueRequest, "operation" | "name" | "summary"> = {},
): CatalogueRequest {
  return { operation, name, ...(summary !== null && { summary }), ...parts };
}

/**
 * All requests. A run begins with two saved values: `url`, a URL that receives webhooks, and
 * `since`, a time before the run.
 */
export const CATALOGUE: readonly CatalogueRequest[] = [
  request("createPayment", "card", "A card that is approved (variant A)", {
    body: { ...CARD, ...card("4242 4242 4242 4242") },
    save: "payment",
  }),
  request("createPayment", "card_variant_b", "The same fields in variant B", {
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
  }),
  request("createPayment", "three_d_secure", "A card that needs 3-D Secure", {
    body: { ...EUR, ...card("4000 0025 0000 3155") },
    save: "action",
  }),
  request("createPayment", "declined", "A card that is declined: 402", {
    body: { ...EUR, ...card("4000 0000 0000 0002") },
  }),
  request("createPayment", "insufficient_funds", "A card without funds: 402", {
    body: { ...EUR, ...card("4000 0000 0000 9995") },
  }),
  request("createPayment", "sepa", "SEPA", {
    body: { ...EUR, method_kind: "sepa", iban: { iban: "DE89 3704 0044 0532 0130 00" } },
    save: "sepa",
  }),
  request("createPayment", "sepa_return", "SEPA, returned by the bank with R01", {
    body: { ...EUR, iban: "DE00 0000 0000 0000 0000 99" },
    save: "failed",
  }),
  request("createPayment", "swift", "SWIFT with manual settlement", {
    body: { ...EUR, iban: "GB82 WEST 1234 5698 7654 32", settlement: "manual" },
    save: "swift",
  }),
  request("createPayment", "stablecoin", "USDC on Base", {
    body: {
      amount: 1_500_000,
      currency: "USDC",
      wallet: { address: "0x000000000000000000000000000000000000dEaD", network: "base" },
    },
  }),
  request("createPayment", "stablecoin_revert", "USDC, reverted on chain", {
    body: {
      amount: 1_500_000,
      currency: "USDC",
      wallet: "0x0000000000000000000000000000000000000BAD",
    },
  }),
  request("createPayment", "outcome", "A forced outcome", {
    body: { ...EUR, outcome: "pending" },
    save: "pending",
  }),
  request(
    "createPayment",
    "token",
    "A token of a card, and the page to which the payer comes back",
    {
      body: {
        ...EUR,
        card: { token: "pm_card_visa" },
        return_url: "https://shop.example/orders/1001",
      },
    },
  ),
  request("createPayment", "manual_capture", "Manual capture: `authorized` until you capture it", {
    body: { ...EUR, card: { token: "pm_card_mastercard" }, capture: "manual" },
    save: "authorized",
  }),
  request("capturePayment", "part", "Capture a part; the rest is released", {
    of: "authorized",
    body: { amount: 1500 },
  }),
  request(
    "createPayment",
    "manual_settlement",
    "A card with manual settlement: its refunds wait for an advance",
    {
      body: { ...EUR, card: { token: "pm_card_visa" }, settlement: "manual" },
      save: "waiting_payment",
    },
  ),
  request("createPayment", "bank_transfer", "A bank transfer that the payer sends", {
    body: { ...EUR, method_kind: "sepa" },
    save: "bank_transfer",
  }),
  request(
    "createPayment",
    "stablecoin_address",
    "A stablecoin that the payer sends to an address",
    {
      body: { amount: 5000000, currency: "USDC", capability: "stablecoin_payment" },
      save: "deposit",
    },
  ),
  request("createPayment", "save", "A card that is saved for later payments", {
    body: { ...EUR, customer: CUSTOMER, card: { token: "pm_card_visa" }, save: "off_session" },
  }),
  request("createPayment", "save_sepa", "SEPA Direct Debit: the mandate is saved, without money", {
    body: {
      amount: 0,
      currency: "EUR",
      customer: CUSTOMER,
      iban: "DE89 3704 0044 0532 0130 00",
      mandate: { signed_at: "2026-01-31" },
      save: "off_session",
    },
  }),
  request("listInstruments", "page", "The newest card of a customer", {
    query: `customer_id=${CUSTOMER.id}&method_kind=card&limit=1`,
    save: "instrument",
  }),
  request("createPayment", "off_session", "With a saved instrument, without the payer", {
    body: { ...EUR, instrument: "$instrument", off_session: true },
  }),
  request("getInstrument", "instrument", "An instrument", { of: "instrument" }),
  request("endInstrument", "ended", "End an instrument", { of: "instrument" }),
  // Without payments, so that the replays of other requests stay.
  request("eraseCustomer", "nobody", "No payment has this customer", { key: "customer-8" }),
  request("eraseCustomerByEmail", "nobody", "No payment has this address", {
    query: "email=nobody%40example.com",
  }),
  request("getPayment", "payment", "A completed payment", { of: "payment" }),
  request("listPayments", "page", "A page of one", { query: one }),
  request("listPaymentTotals", "all", "By status and currency"),
  request("cancelPayment", "cancelled", "Cancel a pending payment", { of: "pending" }),
  request("refundPayment", "part", "Refund a part", {
    of: "payment",
    body: { amount: 500, reason: "requested_by_customer" },
    save: "refund",
  }),
  request("refundPayment", "rest", "Refund the rest", { of: "payment", body: {} }),
  request(
    "refundPayment",
    "no_match",
    "To another payee, whose name does not match: it waits for an advance",
    { of: "sepa", body: { amount: 700, destination: NO_MATCH }, save: "pending_refund" },
  ),
  request("advanceRefund", "completed", "To `completed`", {
    of: "pending_refund",
    body: { to: "completed" },
  }),
  request("refundPayment", "pending", "A refund that waits for an advance", {
    of: "waiting_payment",
    body: { amount: 300 },
    save: "failing_refund",
  }),
  request("advanceRefund", "failed", "To `failed`", {
    of: "failing_refund",
    body: { to: "failed" },
  }),
  request("getRefund", "refund", "A refund", { of: "refund" }),
  request("listRefunds", "page", "A page of one", { query: one }),
  request("listPaymentRefunds", "page", "A page of one", { of: "payment", query: one }),
  request("createSandboxPayment", "success", "A completed payment", {
    body: forced("success"),
    save: "funds",
  }),
  request("createSandboxPayment", "declined", "A declined payment, which also gets 201", {
    body: forced("declined"),
  }),
  request("createSandboxPayment", "chargeback", "A payment with a chargeback", {
    body: forced("chargeback"),
  }),
  request("createPayment", "disputed", "A card that is disputed as soon as the payment completes", {
    body: { ...EUR, card: { token: "pm_card_createDispute" } },
    save: "disputed",
  }),
  request("listDisputes", "page", "A page of one", { query: one, save: "dispute" }),
  request("getDispute", "dispute", "A dispute", { of: "dispute" }),
  request("submitEvidence", "saved", "Evidence that is only saved", {
    of: "dispute",
    body: { text: "Delivered on 2 March, tracking number 00340434", submit: false },
  }),
  request("submitEvidence", "under_review", "Submitted evidence", {
    of: "dispute",
    body: { text: "Delivered on 2 March, tracking number 00340434" },
  }),
  request("acceptDispute", "lost", "A dispute that is given up", { of: "dispute" }),
  request("listDisputes", "open", "Disputes that wait for evidence", {
    query: "status=needs_response&limit=1",
    save: "open_dispute",
  }),
  request("submitEvidence", "won", "Winning evidence in the sandbox", {
    of: "open_dispute",
    body: { text: "winning_evidence" },
  }),
  request("createCheckout", "order", "A price in euros and in a stablecoin", {
    body: {
      ...{ amount: 1999, currency: "EUR", reference: "order-1003" },
      ...{ other_prices: [{ amount_minor: 21_000_000, currency: "USDC" }] },
      return_url: "https://shop.example/orders/1003",
    },
    save: "checkout",
  }),
  request("createCheckout", "link", "A link that any number of payers can pay", {
    body: { amount: 500, currency: "EUR", description: "Donation", max_payments: null },
    save: "link",
  }),
  request("payCheckout", "declined", "A decline leaves the checkout open", {
    of: "checkout",
    body: { card: { token: "pm_card_chargeDeclined" } },
  }),
  request("payCheckout", "paid", "3-D Secure that succeeds", {
    of: "checkout",
    body: { card: { token: "pm_card_authenticationRequired" }, authenticate: "success" },
  }),
  request("getCheckout", "checkout", "A checkout", { of: "checkout" }),
  request("listCheckouts", "page", "A page of one", { query: one }),
  request("cancelCheckout", "cancelled", "Cancel a link", { of: "link" }),
  request("advancePayment", "received", "A part of a stablecoin has arrived", {
    of: "deposit",
    body: { to: "processing", amount_received: 2000000 },
  }),
  request("advancePayment", "booked", "The bank books a part of a bank transfer", {
    of: "bank_transfer",
    body: { to: "pending", amount_received: 1000 },
  }),
  request("advancePayment", "reorganised", "The chain has undone the transfers", {
    of: "deposit",
    body: { to: "pending" },
  }),
  request("advancePayment", "processing", "To `processing`", {
    of: "swift",
    body: { to: "processing" },
  }),
  request("advancePayment", "completed", "To `completed`", {
    of: "swift",
    body: { to: "completed" },
  }),
  request("advanceSandboxPayment", "refunded", "To `refunded`", {
    of: "usd",
    body: { to: "refunded" },
  }),
  request("authenticatePayment", "success", "The payer succeeds", {
    of: "action",
    body: { result: "success" },
  }),
  request("createTransfer", "iban", "To a bank account", {
    body: {
      amount: 700,
      currency: "EUR",
      destination: { iban: "DE89 3704 0044 0532 0130 00" },
      description: "Payout 7",
    },
    save: "transfer",
  }),
  request("createTransfer", "wallet", "To a wallet", {
    body: {
      amount: 250_000,
      currency: "USDC",
      destination: { wallet: "0x000000000000000000000000000000000000dEaD" },
    },
  }),
  request("createTransfer", "returned", "To a bank account whose bank returns the money", {
    body: { amount: 100, currency: "EUR", destination: { iban: "DE00 0000 0000 0000 0000 99" } },
  }),
  request(
    "createTransfer",
    "no_match",
    "To a payee whose name does not match: pending until you advance it",
    { body: { amount: 300, currency: "EUR", destination: NO_MATCH }, save: "waiting" },
  ),
  request("advanceTransfer", "completed", "To `completed`", {
    of: "waiting",
    body: { to: "completed" },
  }),
  request("createTransfer", "manual", "Manual settlement, which you can cancel", {
    body: {
      amount: 300,
      currency: "EUR",
      destination: { iban: "DE89 3704 0044 0532 0130 00" },
      settlement: "manual",
    },
    save: "waiting_again",
  }),
  request("cancelTransfer", "cancelled", "Cancel a pending transfer", { of: "waiting_again" }),
  request("getTransfer", "transfer", "A transfer", { of: "transfer" }),
  request("deleteTransferBankDetails", "deleted", "Delete the bank details of a transfer", {
    of: "transfer",
  }),
  request("deletePaymentBankDetails", "deleted", "Delete the bank details of a payment", {
    of: "sepa",
  }),
  request("listTransfers", "page", "A page of one", { query: one }),
  request("listLedgerEntries", "page", "A page of two", { query: "limit=2" }),
  request("getBalance", "balance", "Balances in three currencies"),
  request("createApiKey", "scoped", "A key with read scopes", {
    body: { name: "Reports", scopes: ["payments:read", "ledger:read"] },
    save: "api_key",
  }),
  request(
    "createSandbox",
    "pull_request",
    "A sandbox for a pull request, which ends after an hour",
    { body: { name: "PR 17", expires_in: 3600 }, save: "sandbox" },
  ),
  request("getSandbox", "sandbox", "A sandbox", { of: "sandbox" }),
  request("listSandboxes", "page", "A page of one", { query: one }),
  request("createSandboxKey", "reader", "A key that reads, for an hour", {
    of: "sandbox",
    body: { name: "Review", scopes: ["payments:read", "events:read"], expires_in: 3600 },
  }),
  request("deleteSandbox", "deleted", "A deleted sandbox", { of: "sandbox" }),
  request("getApiKey", "key", "A key", { of: "api_key" }),
  request("getOwnApiKey", "key", "The key of the request"),
  request("listApiKeys", "page", "A page of one", { query: one }),
  request("rotateApiKey", "overlap", "The older secret works for one more hour", {
    of: "api_key",
    body: { expires_in: 3600 },
  }),
  request("revokeApiKey", "revoked", "A revoked key", { of: "api_key" }),
  request("createPayment", "idempotent", "With an idempotency key", {
    body: { ...EUR, reference: "order-1002" },
    key: "order-1002",
  }),
  request("getIdempotencyKey", "first_request", "The first request of an idempotency key", {
    key: "order-1002",
  }),
  request("listRequests", "page", "The requests with an idempotency key", {
    query: "limit=1&idempotency_key=order-1002",
    save: "request",
  }),
  request("getRequest", "request", "A request with its bodies", { of: "request" }),
  request("createWebhookEndpoint", "some", "An endpoint for some event types", {
    body: {
      url: "https://example.com/webhooks",
      events: ["payment.*", "refund.completed"],
      description: "Orders",
    },
    save: "endpoint",
  }),
  request("getWebhookEndpoint", "endpoint", "An endpoint", { of: "endpoint" }),
  request("listWebhookEndpoints", "page", "A page of one", { query: one }),
  request("updateWebhookEndpoint", "disable", "Disable an endpoint", {
    of: "endpoint",
    body: { status: "disabled" },
  }),
  request("rotateWebhookSecret", "overlap", "The older secret also signs for 24 hours", {
    of: "endpoint",
    body: { expires_in: 86_400 },
  }),
  // It gets only triggered events, so the dispatcher sends nothing.
  request("createWebhookEndpoint", "receiver", null, {
    body: { url: "$url", events: ["ping"] },
    save: "receiver",
  }),
  request("triggerWebhook", "completed", "A payment was completed", {
    body: { endpoint_id: "$receiver", event: "payment.completed", payment_id: "$payment" },
    save: "delivery",
  }),
  request("triggerWebhook", "ping", "A ping", {
    body: { endpoint_id: "$receiver", event: "ping", payment_id: "$payment" },
  }),
  request("triggerWebhook", "disabled", "An endpoint was disabled", {
    body: { endpoint_id: "$receiver", event: "webhook_endpoint.disabled", payment_id: "$payment" },
  }),
  request(
    "createWebhookEndpoint",
    "inbox",
    "An endpoint without a URL, whose deliveries you read",
    { body: { delivery: "inbox", events: ["payment.completed"] }, save: "inbox" },
  ),
  request("triggerWebhook", "inbox", "A payment was completed, for an inbox", {
    body: { endpoint_id: "$inbox", event: "payment.completed", payment_id: "$payment" },
  }),
  request("readInbox", "one", "The first delivery of an inbox", { of: "inbox", query: "limit=1" }),
  request("recoverDeliveries", "all", "Every delivery since a time", {
    of: "inbox",
    body: { since: "$since", status: "all" },
  }),
  request("getWebhookDelivery", "delivered", "A delivery that succeeded", { of: "delivery" }),
  request("listWebhookDeliveries", "page", "A page of one", { query: one }),
  request("redeliverWebhook", "pending", "The delivery is pending again", { of: "delivery" }),
  request("listEvents", "page", "A page of one", { query: one, save: "event" }),
  request("getEvent", "event", "An event", { of: "event" }),
  request("deleteWebhookEndpoint", "deleted", "A deleted endpoint", { of: "endpoint" }),
  request("createFault", "lost_response", "The response of the next refund is lost", {
    body: {
      on: "request",
      fault: "server_error_after",
      where: { method: "POST", path: "/v1/payments/{id}/refund" },
    },
    save: "fault",
  }),
  request(
    "createFault",
    "late_webhooks",
    "The next three events of completed payments arrive 2 seconds later",
    {
      body: {
        on: "delivery",
        fault: "delay",
        delay_ms: 2000,
        times: 3,
        where: { event_type: "payment.completed" },
      },
      save: "declared",
    },
  ),
  request(
    "createFault",
    "provider_timeout",
    "The provider does not respond to the next payment by card",
    {
      body: {
        on: "provider",
        fault: "timeout",
        where: { method_kind: "card", operation: "authorize" },
      },
    },
  ),
  request("listFaults", "page", "A page of one item", { query: one }),
  request("getFault", "fault", "A declared fault", { of: "fault" }),
  request("deleteFault", "deleted", "Deleted", { of: "fault" }),
  request("resetSandbox", "reset", "The numbers of deleted resources"),
  request("readChanges", "cursor", "The cursor of the present state"),
  request("getClock", "real", "The real clock"),
  request("listDue", "due", "What comes next"),
  request("setClock", "advance", "A week later, and frozen", {
    body: { advance: 604_800, mode: "frozen" },
  }),
  request("setClock", "real", "The clock runs again", { body: { mode: "real" } }),
];
