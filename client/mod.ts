/**
 * A client of the payments API, with verification of its webhooks. It has no dependencies and uses
 * Web APIs only, so it runs on Deno, Node 20+, Bun, browsers and edge runtimes.
 *
 * @module
 */

export { PaymentsClient, type PaymentsClientOptions } from "./client.ts";
export {
  ApiError,
  type ApiErrorOf,
  ConnectionError,
  type ErrorBody,
  type FailedRequest,
  PaymentsError,
  TimeoutError,
  UnexpectedResponseError,
} from "./errors.ts";
export type { Inbox, InboxDelivery, InboxPage, ReadInboxParams } from "./inbox.ts";
export type { List, ListParams, Page } from "./list.ts";
export type { Exchange, Fetch } from "./exchange.ts";
export type { ReadOptions, RequestOptions, SandboxFault } from "./request_options.ts";
export type { Runtime } from "./runtime.ts";
export type {
  AmountInput,
  DeletedBankDetails,
  IbanInput,
  Mandate,
  MaskedIban,
  Metadata,
  Person,
  PostalAddress,
  Wallet,
  WalletInput,
} from "./values.ts";
export type { NextAction, Payment, PaymentMethod } from "./payment.ts";
export type {
  CapturePaymentInput,
  CardInput,
  CardNumberInput,
  CardTokenInput,
  CreatePaymentInput,
  CreateRefundInput,
  ListPaymentsParams,
  ListRefundsParams,
  PaymentFields,
  Payments,
  Refund,
  RefundDestination,
  RefundDestinationInput,
  Refunds,
} from "./payments.ts";
export type {
  Dispute,
  DisputeEvidence,
  Disputes,
  ListDisputesParams,
  SubmitEvidenceInput,
} from "./disputes.ts";
export type {
  CreateTransferInput,
  ListTransfersParams,
  Transfer,
  TransferDestination,
  TransferFields,
  Transfers,
} from "./transfers.ts";
export type {
  Balance,
  Balances,
  LedgerEntries,
  LedgerEntry,
  ListLedgerEntriesParams,
} from "./ledger.ts";
export type {
  CreateWebhookEndpointInput,
  DeletedWebhookEndpoint,
  DeliveryAttempt,
  DeliveryExchange,
  EndpointFields,
  Event,
  EventObjects,
  EventOf,
  Events,
  EventType,
  ListEventsParams,
  ListWebhookDeliveriesParams,
  RecoverInput,
  Recovery,
  RotateSecretInput,
  Subscription,
  UpdateWebhookEndpointInput,
  WebhookDeliveries,
  WebhookDelivery,
  WebhookEndpoint,
  WebhookEndpoints,
  WebhookEndpointWithSecret,
} from "./webhooks.ts";
export type {
  ApiKey,
  ApiKeys,
  ApiKeyWithSecret,
  CreateApiKeyInput,
  RotateApiKeyInput,
} from "./api_keys.ts";
export type { Clock, ClockAdvance, SetClockInput } from "./clock.ts";
export type {
  AdvanceInput,
  AdvanceRefundInput,
  AdvanceTransferInput,
  AuthenticateInput,
  ListRequestsParams,
  ResetSandboxInput,
  Sandbox,
  SandboxReset,
  TriggerInput,
} from "./sandbox.ts";
export type {
  CreateSandboxInput,
  DisposableSandbox,
  Sandboxes,
  SandboxWithKey,
} from "./sandboxes.ts";
export type { IdempotencyKey, IdempotencyKeys, LoggedRequest } from "./requests.ts";
export type {
  CreateFaultInput,
  DeletedFault,
  DeliveryConditions,
  Fault,
  ProviderConditions,
  RequestConditions,
} from "./faults.ts";
export {
  type Capability,
  type CaptureMethod,
  type DeclineAdvice,
  type DeclineCode,
  type DeliveryFault,
  type DeliveryStatus,
  type DisputeReason,
  type DisputeStatus,
  type EndpointDelivery,
  ERROR_CODES,
  type ErrorCode,
  type ErrorType,
  type FailureCode,
  type LedgerAccount,
  type MandateSequence,
  type MethodKind,
  type Network,
  type Outcome,
  type PayeeCheck,
  type PaymentStatus,
  type ProviderFault,
  type ProviderOperation,
  type RefundReason,
  type RefundStatus,
  type RequestFault,
  type RequestMethod,
  type Scope,
  type Settlement,
  type Speed,
  type Stablecoin,
  type TransferStatus,
} from "./vocabulary.ts";
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
