/**
 * The generated types of the client equal the types that zod derives from the schemas: one of each
 * form that the generator writes. The type checker tests most of this file: `true satisfies
 * Equal<…>` does not compile if two types differ.
 */

import assert from "node:assert/strict";
import type { z } from "zod";
import * as client from "../../packages/client/mod.ts";
import { ERROR_CATALOGUE } from "../../shared/core/errors.ts";
import type * as keys from "../../shared/schema/api_key.ts";
import type * as bank_account from "../../shared/schema/bank_account.ts";
import type * as event from "../../shared/schema/event.ts";
import type { EventType } from "../../shared/schema/event_type.ts";
import type * as list from "../../shared/schema/list.ts";
import type * as payment from "../../shared/schema/payment.ts";
import type * as refund from "../../shared/schema/refund.ts";
import type * as request from "../../shared/schema/request.ts";
import type * as sandbox from "../../shared/schema/sandbox.ts";
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
/** The input of a query, where `limit` is text on the wire and a number in the client. */
type Query<S extends z.ZodType> = Omit<z.input<S>, "limit"> & { limit?: number | undefined };

Deno.test("client types of responses equal those of the schemas", () => {
  true satisfies Equal<client.Payment, z.infer<typeof payment.Payment>>;
  true satisfies Equal<client.NextAction, payment.NextAction>;
  true satisfies Equal<client.Refund, z.infer<typeof refund.Refund>>;
  true satisfies Equal<client.Transfer, z.infer<typeof transfer.Transfer>>;
  true satisfies Equal<client.WebhookDelivery, z.infer<typeof webhook.WebhookDelivery>>;
  true satisfies Equal<client.LoggedRequest, request.LoggedRequest>;
});

Deno.test("client types of responses have a secret only where the API shows it", () => {
  type Endpoint = Omit<z.infer<typeof webhook.WebhookEndpoint>, "secret">;
  true satisfies Equal<client.WebhookEndpoint, Endpoint>;
  true satisfies Equal<client.WebhookEndpointWithSecret, Endpoint & { secret: string }>;
  type Sandbox = Omit<sandbox.DisposableSandbox, "test_key">;
  true satisfies Equal<client.DisposableSandbox, Sandbox>;
  true satisfies Equal<client.SandboxWithKey, Sandbox & { test_key: string }>;
});

Deno.test("client types of events equal those of the schemas, their objects by type", () => {
  true satisfies Equal<client.EventType, EventType>;
  true satisfies Mutual<
    Omit<client.EventOf<client.EventType>, "data">,
    Omit<event.Event, "data">
  >;
  const read = (event: client.Event) =>
    event.type === "transfer.failed" ? event.data.object : undefined;
  true satisfies Equal<ReturnType<typeof read>, client.Transfer | undefined>;
});

Deno.test("client types of bodies equal those of the schemas", () => {
  true satisfies Equal<
    Omit<client.PaymentFields, "card" | "iban" | "wallet">,
    Omit<
      z.input<typeof payment.CreatePaymentBody>,
      "card" | "iban" | "wallet" | "amount" | "amount_minor"
    >
  >;
  // zod takes a preprocessed member as `unknown`, and the members of both kinds of card as
  // optional.
  true satisfies Equal<client.PaymentFields["card"], client.CardInput | undefined>;
  true satisfies Mutual<
    Complete<client.CardNumberInput & client.CardTokenInput>,
    Complete<z.input<typeof payment.CardInput>>
  >;
  true satisfies Equal<client.PaymentFields["iban"], string | bank_account.IbanInput | undefined>;
  true satisfies Equal<
    client.TransferFields["destination"]["wallet"],
    string | payment.WalletInput | undefined
  >;
  true satisfies Equal<
    keyof client.RefundDestinationInput,
    keyof NonNullable<z.input<typeof refund.CreateRefundBody>["destination"]>
  >;
  true satisfies Equal<
    client.UpdateWebhookEndpointInput,
    z.input<typeof webhook.UpdateWebhookEndpointBody>
  >;
  true satisfies Equal<client.CreateApiKeyInput, z.input<typeof keys.CreateApiKeyBody>>;
});

Deno.test("client types of a create require an amount, by either name", () => {
  type Amounts = Pick<z.input<typeof payment.CreatePaymentBody>, "amount" | "amount_minor">;
  false satisfies [{ currency: string }] extends [client.CreatePaymentInput] ? true : false;
  true satisfies Mutual<
    Amounts & ({ amount: number } | { amount_minor: number }),
    client.AmountInput
  >;
});

Deno.test("client types of queries equal those of the schemas", () => {
  true satisfies Equal<client.ListPaymentsParams, Query<typeof list.ListPaymentsQuery>>;
  true satisfies Equal<client.ListParams, Query<typeof list.ListPaymentRefundsQuery>>;
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
