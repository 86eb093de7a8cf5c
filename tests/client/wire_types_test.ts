/**
 * The client's types equal the types of the service's schemas. The type checker tests most of this
 * file: `true satisfies Equal<…>` does not compile if they differ.
 */

import assert from "node:assert/strict";
import type { z } from "zod";
import * as client from "../../client/mod.ts";
import { ERROR_CATALOGUE } from "../../shared/core/errors.ts";
import type * as keys from "../../shared/schema/api_key.ts";
import type * as bank_account from "../../shared/schema/bank_account.ts";
import type * as inbox from "../../shared/schema/inbox.ts";
import type * as clock from "../../shared/schema/clock.ts";
import type * as event from "../../shared/schema/event.ts";
import type { EventType } from "../../shared/schema/event_type.ts";
import type * as ledger from "../../shared/schema/ledger.ts";
import type * as list from "../../shared/schema/list.ts";
import type * as payment from "../../shared/schema/payment.ts";
import type * as payment_advance from "../../shared/schema/payment_advance.ts";
import type * as refund from "../../shared/schema/refund.ts";
import type * as sandbox from "../../shared/schema/sandbox.ts";
import type * as request from "../../shared/schema/request.ts";
import type * as transfer from "../../shared/schema/transfer.ts";
import type * as webhook from "../../shared/schema/webhook.ts";

/** A type without optional members. */
type Complete<T> = { [Name in keyof T]-?: Exclude<T[Name], undefined> };
/** One level of an intersection, as one object. */
type Flat<T> = T extends object ? { [K in keyof T]: T[K] } : T;
/** True if two types are the same. Optional and undefined members are different. */
type Equal<A, B> = (<T>() => T extends Flat<A> ? 1 : 2) extends (<T>() => T extends Flat<B> ? 1 : 2)
  ? true
  : false;
/** True if two types are assignable to each other. */
type Mutual<A, B> = [A] extends [B] ? [B] extends [A] ? true : false : false;
/** The input of a schema without its instruments, which the schema preprocesses from `unknown`. */
type Taken<S extends z.ZodType, Preprocessed extends string = never> = Omit<
  z.input<S>,
  Preprocessed
>;
type Without<T, Names extends string> = Omit<T, Names>;
/** The input of a query, where `limit` is text on the wire and a number in the client. */
type Query<S extends z.ZodType> = Omit<z.input<S>, "limit"> & { limit?: number | undefined };
/** A response without `secret`, which only some responses have. */
type Public<S extends z.ZodType> = Omit<z.infer<S>, "secret">;

Deno.test("client types of responses equal those of the schemas", () => {
  true satisfies Equal<client.Payment, z.infer<typeof payment.Payment>>;
  true satisfies Equal<client.PaymentMethod, payment.PaymentMethod>;
  true satisfies Equal<client.NextAction, payment.NextAction>;
  true satisfies Equal<client.PaymentStatus, payment.PaymentStatus>;
  true satisfies Equal<client.Clock, z.infer<typeof clock.Clock>>;
  true satisfies Equal<client.ClockAdvance, z.infer<typeof clock.ClockAdvance>>;
  true satisfies Equal<client.SetClockInput, z.input<typeof clock.SetClockBody>>;
  true satisfies Equal<client.Refund, z.infer<typeof refund.Refund>>;
  true satisfies Equal<client.Transfer, z.infer<typeof transfer.Transfer>>;
  true satisfies Equal<client.TransferDestination, transfer.TransferDestination>;
  true satisfies Equal<client.LedgerEntry, z.infer<typeof ledger.LedgerEntry>>;
  true satisfies Equal<client.Balance, ledger.Balance>;
  true satisfies Equal<client.WebhookEndpoint, Public<typeof webhook.WebhookEndpoint>>;
  true satisfies Equal<
    client.WebhookEndpointWithSecret,
    Public<typeof webhook.WebhookEndpoint> & { secret: string }
  >;
  true satisfies Equal<client.WebhookDelivery, z.infer<typeof webhook.WebhookDelivery>>;
  true satisfies Equal<
    client.DisposableSandbox,
    Without<sandbox.DisposableSandbox, "test_key">
  >;
  true satisfies Equal<
    client.SandboxWithKey,
    Without<sandbox.DisposableSandbox, "test_key"> & { test_key: string }
  >;
  true satisfies Equal<client.IdempotencyKey, request.IdempotencyKey>;
  true satisfies Equal<client.LoggedRequest, request.LoggedRequest>;
  true satisfies Equal<client.ApiKey, Public<typeof keys.ApiKey>>;
  true satisfies Equal<
    client.ApiKeyWithSecret,
    Public<typeof keys.ApiKey> & { secret: string }
  >;
});

Deno.test("client types of events equal those of the schemas, their objects by type", () => {
  type Wire = event.Event;
  true satisfies Equal<client.EventType, EventType>;
  true satisfies Mutual<
    Without<client.EventOf<client.EventType>, "data">,
    Without<Wire, "data">
  >;
  const read = (event: client.Event) =>
    event.type === "transfer.failed" ? event.data.object : undefined;
  true satisfies Equal<ReturnType<typeof read>, client.Transfer | undefined>;
});

Deno.test("client types of bodies equal those of the schemas", () => {
  true satisfies Equal<
    Without<client.PaymentFields, "card" | "iban" | "wallet">,
    Without<
      Taken<typeof payment.CreatePaymentBody, "card" | "iban" | "wallet">,
      "amount" | "amount_minor"
    >
  >;
  true satisfies Equal<client.PaymentFields["card"], client.CardInput | undefined>;
  // The schema has the members of both kinds of card, all of them optional.
  true satisfies Mutual<
    Complete<client.CardNumberInput & client.CardTokenInput>,
    Complete<z.input<typeof payment.CardInput>>
  >;
  true satisfies Equal<
    client.PaymentFields["iban"],
    string | bank_account.IbanInput | undefined
  >;
  true satisfies Equal<
    client.PaymentFields["wallet"],
    string | payment.WalletInput | undefined
  >;
  true satisfies Equal<
    Without<client.TransferFields, "destination">,
    Without<Taken<typeof transfer.CreateTransferBody, "destination">, "amount" | "amount_minor">
  >;
  true satisfies Equal<
    client.TransferFields["destination"]["iban"],
    string | bank_account.IbanInput | undefined
  >;
  true satisfies Equal<
    client.TransferFields["destination"]["wallet"],
    string | payment.WalletInput | undefined
  >;
  true satisfies Equal<
    keyof client.TransferFields["destination"],
    keyof z.input<typeof transfer.CreateTransferBody>["destination"]
  >;
  true satisfies Equal<
    Without<client.CreateRefundInput, "destination">,
    Without<z.input<typeof refund.CreateRefundBody>, "destination">
  >;
  true satisfies Equal<
    keyof client.RefundDestinationInput,
    keyof NonNullable<z.input<typeof refund.CreateRefundBody>["destination"]>
  >;
  true satisfies Equal<client.AdvanceInput, z.input<typeof payment_advance.AdvancePaymentBody>>;
  true satisfies Equal<client.AuthenticateInput, z.input<typeof payment.AuthenticatePaymentBody>>;
  true satisfies Equal<client.CapturePaymentInput, z.input<typeof payment.CapturePaymentBody>>;
  true satisfies Equal<client.AdvanceRefundInput, z.input<typeof refund.AdvanceRefundBody>>;
  true satisfies Equal<client.AdvanceTransferInput, z.input<typeof transfer.AdvanceTransferBody>>;
  true satisfies Equal<client.TriggerInput, z.input<typeof webhook.TriggerWebhookBody>>;
  true satisfies Equal<
    client.EndpointFields,
    Without<z.input<typeof webhook.CreateWebhookEndpointBody>, "delivery" | "url">
  >;
  true satisfies Equal<client.RecoverInput, z.input<typeof inbox.RecoverDeliveriesBody>>;
  true satisfies Equal<
    client.UpdateWebhookEndpointInput,
    z.input<typeof webhook.UpdateWebhookEndpointBody>
  >;
  true satisfies Equal<client.RotateSecretInput, z.input<typeof webhook.RotateWebhookSecretBody>>;
  true satisfies Equal<client.CreateApiKeyInput, z.input<typeof keys.CreateApiKeyBody>>;
  true satisfies Equal<
    client.CreateSandboxInput,
    z.input<typeof sandbox.CreateSandboxBody>
  >;
  true satisfies Equal<client.RotateApiKeyInput, z.input<typeof keys.RotateApiKeyBody>>;
  true satisfies Equal<client.Scope, keys.Scope>;
});

Deno.test("client types of a create require an amount, by either name", () => {
  type Amounts = Pick<z.input<typeof payment.CreatePaymentBody>, "amount" | "amount_minor">;
  true satisfies [client.AmountInput] extends [Amounts] ? true : false;
  false satisfies [{ currency: string }] extends [client.CreatePaymentInput] ? true : false;
  true satisfies Mutual<
    Amounts & ({ amount: number } | { amount_minor: number }),
    client.AmountInput
  >;
});

Deno.test("client types of queries equal those of the schemas", () => {
  true satisfies Equal<client.ListPaymentsParams, Query<typeof list.ListPaymentsQuery>>;
  true satisfies Equal<client.ListRefundsParams, Query<typeof list.ListRefundsQuery>>;
  true satisfies Equal<client.ListParams, Query<typeof list.ListPaymentRefundsQuery>>;
  true satisfies Equal<client.ListTransfersParams, Query<typeof list.ListTransfersQuery>>;
  true satisfies Equal<client.ListLedgerEntriesParams, Query<typeof list.ListLedgerEntriesQuery>>;
  true satisfies Equal<client.ListEventsParams, Query<typeof webhook.ListEventsQuery>>;
  true satisfies Equal<
    client.ListWebhookDeliveriesParams,
    Query<typeof webhook.ListWebhookDeliveriesQuery>
  >;
  true satisfies Equal<client.ListParams, Query<typeof webhook.ListWebhookEndpointsQuery>>;
  true satisfies Equal<client.ListParams, Query<typeof keys.ListApiKeysQuery>>;
  true satisfies Equal<client.ListRequestsParams, Query<typeof request.ListRequestsQuery>>;
});

Deno.test("ERROR_CODES equals the service's catalogue", () => {
  assert.deepEqual(client.ERROR_CODES, ERROR_CATALOGUE);
  true satisfies Equal<typeof client.ERROR_CODES, typeof ERROR_CATALOGUE>;
});

Deno.test("ApiError.is() narrows the type by code", () => {
  const read = (error: client.ApiError) => {
    if (error.is("payment_declined", "insufficient_funds")) return error.payment;
    if (error.is("invalid_state")) return error.body.allowed;
    return error.code;
  };
  const body = { type: "payment", message: "", request_id: "req_", doc_url: "" } as const;
  const request = { operation: "", idempotencyKey: null, attempts: 1 };
  const error = new client.ApiError({ status: 404, body: { ...body, code: "not_found" } }, request);
  true satisfies Mutual<ReturnType<typeof read>, client.Payment | string[] | client.ErrorCode>;
  assert.equal(read(error), "not_found");
});
