/**
 * A client of the payments API, with verification of its webhooks. It has no dependencies and uses
 * Web APIs only, so it runs on Deno, Node 20+, Bun, browsers and edge runtimes.
 *
 * @module
 */

export * from "./resources.ts";
export { PaymentsClient, type PaymentsClientOptions } from "./client.ts";
export {
  ApiError,
  type ApiErrorOf,
  ConnectionError,
  type FailedRequest,
  PaymentsError,
  TimeoutError,
  UnexpectedResponseError,
} from "./errors.ts";
export type { Inbox, ReadInboxParams } from "./inbox.ts";
export type { List, Page } from "./list.ts";
export type { Exchange, Fetch } from "./exchange.ts";
export type { ReadOptions, RequestOptions, SandboxFault } from "./request_options.ts";
export type { Runtime } from "./runtime.ts";
export type { Payments, Refunds } from "./payments.ts";
export type { Disputes } from "./disputes.ts";
export type { Customers } from "./customers.ts";
export type { Checkouts } from "./checkouts.ts";
export type { Instruments } from "./instruments.ts";
export type { Transfers } from "./transfers.ts";
export type { Balances, LedgerEntries } from "./ledger.ts";
export type {
  Event,
  EventObjects,
  EventOf,
  Events,
  WebhookDeliveries,
  WebhookEndpoints,
} from "./webhooks.ts";
export type { ApiKeys } from "./api_keys.ts";
export type { ReadChangesParams, Sandbox } from "./sandbox.ts";
export type { Sandboxes } from "./sandboxes.ts";
export type { IdempotencyKeys } from "./requests.ts";
export {
  DEFAULT_TOLERANCE_SECONDS,
  signWebhook,
  verifyWebhook,
  type VerifyWebhookOptions,
  WEBHOOK_SIGNATURE_HEADER,
  type WebhookEvent,
  type WebhookRefusal,
  type WebhookToSign,
  WebhookVerificationError,
} from "./webhook_signature.ts";
