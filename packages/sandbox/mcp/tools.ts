/**
 * The tools of an agent. Their fields are those of the API (shared/schema), so an agent that calls
 * them learns the requests that its code sends.
 */

import * as z from "zod";
import type {
  CreateCheckoutInput,
  CreateFaultInput,
  CreatePaymentInput,
  CreateRefundInput,
  PayCheckoutInput,
} from "../../client/mod.ts";
import { explainError } from "../../../tools/generate/error_help.ts";
import {
  CreateCheckoutBody,
  ListCheckoutsQuery,
  PayCheckoutBody,
} from "../../../shared/schema/checkout_body.ts";
import { SetClockBody } from "../../../shared/schema/clock_body.ts";
import { ERROR_CODES } from "../../../shared/schema/error.ts";
import { CreateFaultBody } from "../../../shared/schema/fault.ts";
import { MAX_IDEMPOTENCY_KEY } from "../../../shared/schema/limits.ts";
import { cursor, ListInstrumentsQuery, ListPaymentsQuery } from "../../../shared/schema/list.ts";
import { CreatePaymentBody } from "../../../shared/schema/payment_body.ts";
import { AdvancePaymentBody } from "../../../shared/schema/payment_advance.ts";
import { AdvanceRefundBody, CreateRefundBody } from "../../../shared/schema/refund_body.ts";
import { mustBe } from "../../../shared/schema/requirement.ts";
import { ListRequestsQuery } from "../../../shared/schema/request_query.ts";
import { AmountMinor, id } from "../../../shared/schema/values.ts";
import { CreateWebhookEndpointBody, ListEventsQuery } from "../../../shared/schema/webhook_body.ts";
import {
  TEST_CARDS,
  TEST_IBANS,
  TEST_WALLETS,
} from "../../../shared/domain/providers/test_values.ts";
import { keyLink } from "../key_link.ts";
import { VARIABLES } from "../service_access.ts";
import { type Tool, tool } from "./tool.ts";
import { fittingPage } from "./tool_result.ts";

/** Items of a page. An agent reads a long list in pages. */
const MAX_PAGE = 20;
const DEFAULT_PAGE = 10;
/** Seconds that a read of an inbox waits at most (contract §4). */
const MAX_WAIT_S = 20;

const limit = z.int().min(1).max(MAX_PAGE).default(DEFAULT_PAGE)
  .describe("Most items of the page. A page whose text is too long has fewer");
/** The argument that a tool sends as the header of this name. No body has such a field. */
const HEADER = "Idempotency-Key";
const header = mustBe(
  z.string().regex(/^[\x21-\x7e]+$/).max(MAX_IDEMPOTENCY_KEY).optional().describe(
    "Sent as the header Idempotency-Key, never in the body: another call with the same key and " +
      "input changes nothing and gets the first response",
  ),
  `text of 1 to ${MAX_IDEMPOTENCY_KEY} visible ASCII characters, without spaces`,
);
const amount = AmountMinor.optional();
const payment = id("pay_").describe("Id of the payment");
const checkout = id("chk_").describe("Id of the checkout");

const test_values = [...TEST_CARDS, ...TEST_IBANS, ...TEST_WALLETS]
  .map(({ value, name }) => `${value} (${name})`).join("; ");

/** All tools, in the order in which a client lists them. */
export const TOOLS: readonly Tool[] = [
  tool({
    name: "get_sandbox",
    title: "Get the sandbox",
    description: "Returns where the sandbox is, for programs that you run against it: set " +
      `${VARIABLES.base_url} and ${VARIABLES.key} for them. The paths of the API follow the base ` +
      "URL, such as /api-v1-payments/v1/payments. test_key is null if the user has set the key.",
    effect: "read",
    input: {},
    run: (_input, { base_url, test_key }) =>
      Promise.resolve({
        base_url,
        test_key: test_key ?? null,
        console_url: test_key === undefined ? null : keyLink(base_url, test_key),
      }),
  }),
  tool({
    name: "create_payment",
    title: "Create a payment",
    description: "Makes a payment. A decline is an error with status 402 and the stored payment. " +
      "Send card, iban or wallet with a test value, or force a result with outcome; without any " +
      "of them the payment is pending. save keeps the card or IBAN for payments with instrument. " +
      `Test values: ${test_values}.`,
    effect: "change",
    input: {
      // Other names of fields, and the rail, which follows from the instrument.
      ...z.object(CreatePaymentBody.shape)
        .omit({ amount_minor: true, payer: true, capability: true, method_kind: true }).shape,
      amount: AmountMinor,
      [HEADER]: header,
    },
    // The schema has checked that the card is a token, or a number with its other members.
    run: ({ [HEADER]: idempotencyKey, ...input }, { client, signal }) =>
      client.payments.create(input as CreatePaymentInput, { idempotencyKey, signal }),
  }),
  tool({
    name: "get_payment",
    title: "Get a payment",
    description: "Returns a payment with its present status.",
    effect: "read",
    input: { id: payment },
    run: ({ id }, { client, signal }) => client.payments.retrieve(id, { signal }),
  }),
  tool({
    name: "list_payments",
    title: "List payments",
    description: "Returns a page of payments, newest first. next_cursor continues the list.",
    effect: "read",
    input: {
      ...ListPaymentsQuery.omit({ created_after: true, created_before: true }).shape,
      limit,
    },
    run: ({ limit, ...filters }, { client, signal }) =>
      fittingPage(limit, (limit) => client.payments.list({ ...filters, limit }, { signal })),
  }),
  tool({
    name: "capture_payment",
    title: "Capture a payment",
    description:
      "Takes the amount of an authorized payment, or a part of it, once. Make one with " +
      'capture "manual".',
    effect: "change",
    input: { id: payment, amount, [HEADER]: header },
    run: ({ id, [HEADER]: idempotencyKey, ...input }, { client, signal }) =>
      client.payments.capture(id, input, { idempotencyKey, signal }),
  }),
  tool({
    name: "refund_payment",
    title: "Refund a payment",
    description: "Refunds a part of a completed payment, or without an amount the rest of it.",
    effect: "change",
    input: {
      id: payment,
      ...z.object(CreateRefundBody.shape).omit({ amount_minor: true, speed: true }).shape,
      amount,
      [HEADER]: header,
    },
    run: ({ id, [HEADER]: idempotencyKey, ...input }, { client, signal }) =>
      client.payments.refund(id, input as CreateRefundInput, { idempotencyKey, signal }),
  }),
  tool({
    name: "cancel_payment",
    title: "Cancel a payment",
    description: "Cancels a payment whose money has not moved, and releases an authorization.",
    effect: "change",
    input: { id: payment, [HEADER]: header },
    run: ({ id, [HEADER]: idempotencyKey }, { client, signal }) =>
      client.payments.cancel(id, { idempotencyKey, signal }),
  }),
  tool({
    name: "create_checkout",
    title: "Create a checkout",
    description: "Makes a price that a payer pays by a method of their choice, in one attempt or " +
      "more, on the page at url. With max_payments null it is a link, which any number of payers " +
      "can pay.",
    effect: "change",
    input: {
      ...z.object(CreateCheckoutBody.shape).omit({ amount_minor: true, expires_at: true }).shape,
      amount: AmountMinor,
      [HEADER]: header,
    },
    run: ({ [HEADER]: idempotencyKey, ...input }, { client, signal }) =>
      client.checkouts.create(input as CreateCheckoutInput, { idempotencyKey, signal }),
  }),
  tool({
    name: "get_checkout",
    title: "Get a checkout",
    description: "Returns a checkout. list_payments with its checkout_id has its attempts.",
    effect: "read",
    input: { id: checkout },
    run: ({ id }, { client, signal }) => client.checkouts.retrieve(id, { signal }),
  }),
  tool({
    name: "list_checkouts",
    title: "List checkouts",
    description: "Returns a page of checkouts and links, newest first.",
    effect: "read",
    input: { ...ListCheckoutsQuery.shape, limit },
    run: ({ limit, ...filters }, { client, signal }) =>
      fittingPage(limit, (limit) => client.checkouts.list({ ...filters, limit }, { signal })),
  }),
  tool({
    name: "pay_checkout",
    title: "Pay a checkout",
    description: "Does what a payer does on the page of a checkout, 3-D Secure included. Returns " +
      "the checkout with its new payment, also after a decline. card, iban and instrument decide " +
      "the method. Test values are those of create_payment.",
    effect: "change",
    input: { id: checkout, ...PayCheckoutBody.shape, [HEADER]: header },
    run: ({ id, [HEADER]: idempotencyKey, ...input }, { client, signal }) =>
      client.sandbox.payCheckout(id, input as PayCheckoutInput, { idempotencyKey, signal }),
  }),
  tool({
    name: "cancel_checkout",
    title: "Cancel a checkout",
    description: "Cancels an open checkout: nobody can pay it any more.",
    effect: "change",
    input: { id: checkout, [HEADER]: header },
    run: ({ id, [HEADER]: idempotencyKey }, { client, signal }) =>
      client.checkouts.cancel(id, { idempotencyKey, signal }),
  }),
  tool({
    name: "list_instruments",
    title: "List instruments",
    description: "Returns a page of the cards and SEPA mandates that payments with save have " +
      "kept, newest first. create_payment takes an active one as instrument.",
    effect: "read",
    input: { ...ListInstrumentsQuery.shape, limit },
    run: ({ limit, ...filters }, { client, signal }) =>
      fittingPage(limit, (limit) => client.instruments.list({ ...filters, limit }, { signal })),
  }),
  tool({
    name: "end_instrument",
    title: "End an instrument",
    description: "Ends a saved card or mandate: no later payment can use it.",
    effect: "destroy",
    input: { id: id("ins_").describe("Id of the instrument"), [HEADER]: header },
    run: ({ id, [HEADER]: idempotencyKey }, { client, signal }) =>
      client.instruments.end(id, { idempotencyKey, signal }),
  }),
  tool({
    name: "advance_payment",
    title: "Advance a payment",
    description: "Moves a payment to a status that can follow its own, as the payer, the bank or " +
      "the chain would: completed after 3-D Secure, failed, chargeback. The error invalid_state " +
      "lists the statuses that are allowed.",
    effect: "change",
    input: { id: payment, ...AdvancePaymentBody.shape },
    run: ({ id, ...input }, { client, signal }) => client.sandbox.advance(id, input, { signal }),
  }),
  tool({
    name: "advance_refund",
    title: "Advance a refund",
    description:
      "Completes a pending refund, or makes it fail. Refunds are pending if the payment " +
      'has settlement "manual".',
    effect: "change",
    input: { id: id("re_").describe("Id of the refund"), ...AdvanceRefundBody.shape },
    run: ({ id, ...input }, { client, signal }) =>
      client.sandbox.advanceRefund(id, input, { signal }),
  }),
  tool({
    name: "get_clock",
    title: "Get the clock",
    description: "Returns the time of the sandbox, and whether its clock is real or frozen.",
    effect: "read",
    input: {},
    run: (_input, { client, signal }) => client.sandbox.clock({ signal }),
  }),
  tool({
    name: "set_clock",
    title: "Set the clock",
    description: "Advances or freezes the clock of the sandbox, which never goes back, and does " +
      "what becomes due: payments expire, webhooks are retried, disputes are lost, old data is " +
      "deleted. did in the result counts that. Only reset_sandbox makes it the real clock again.",
    effect: "destroy",
    input: {
      advance: SetClockBody.shape.advance,
      to: mustBe(
        z.iso.datetime({ offset: true }).optional()
          .describe("The new time, such as 2030-01-31T09:00:00Z, at most 400 days ahead"),
        "a time such as 2030-01-31T09:00:00Z",
      ),
      mode: SetClockBody.shape.mode,
    },
    run: (input, { client, signal }) => client.sandbox.setClock(input, { signal }),
  }),
  tool({
    name: "declare_fault",
    title: "Declare a fault",
    description: "Makes the next matching requests, webhook deliveries or provider operations " +
      "fail, to test how a program copes. The tools send requests too: those that change " +
      "something use faults up, and reads do not.",
    effect: "change",
    input: CreateFaultBody.shape,
    // The API checks that the fault and its conditions belong to the kind of target.
    run: (input, { client, signal }) =>
      client.sandbox.createFault(input as CreateFaultInput, { signal }),
  }),
  tool({
    name: "list_faults",
    title: "List faults",
    description: "Returns a page of declared faults, newest first. left is how often each happens.",
    effect: "read",
    input: { limit, starting_after: cursor("flt_") },
    run: ({ limit, ...filters }, { client, signal }) =>
      fittingPage(limit, (limit) => client.sandbox.listFaults({ ...filters, limit }, { signal })),
  }),
  tool({
    name: "delete_fault",
    title: "Delete a fault",
    description: "Ends a declared fault.",
    effect: "destroy",
    input: { id: id("flt_").describe("Id of the fault") },
    run: ({ id }, { client, signal }) => client.sandbox.deleteFault(id, { signal }),
  }),
  tool({
    name: "create_inbox",
    title: "Create an inbox",
    description: "Makes a webhook endpoint without a URL, which read_inbox reads. It gets the " +
      "events from now on. secret verifies their signatures.",
    effect: "change",
    input: { events: CreateWebhookEndpointBody.shape.events },
    run: ({ events }, { client, signal }) =>
      client.webhookEndpoints.create({ delivery: "inbox", events }, { signal }),
  }),
  tool({
    name: "read_inbox",
    title: "Read an inbox",
    description: "Returns the webhook deliveries of an inbox, oldest first: headers and body are " +
      "those that a receiver with a URL gets. after acknowledges the deliveries up to it.",
    effect: "change",
    input: {
      endpoint_id: id("whe_").describe("Id of the inbox, from create_inbox"),
      after: z.string().startsWith("inb_").optional()
        .describe("next_cursor of the read before"),
      wait: z.int().min(0).max(MAX_WAIT_S).default(0)
        .describe("Seconds to wait for a delivery if the inbox has none"),
      limit,
    },
    run: ({ endpoint_id, limit, ...params }, { client, signal }) =>
      fittingPage(
        limit,
        (limit) => client.webhookEndpoints.inbox(endpoint_id, { ...params, limit }, { signal }),
      ),
  }),
  tool({
    name: "list_events",
    title: "List events",
    description: "Returns a page of events, newest first: everything that has happened to " +
      "payments, refunds, disputes and transfers, whether or not a webhook endpoint has got it.",
    effect: "read",
    input: { ...ListEventsQuery.shape, limit },
    run: ({ limit, ...filters }, { client, signal }) =>
      fittingPage(limit, (limit) => client.events.list({ ...filters, limit }, { signal })),
  }),
  tool({
    name: "list_requests",
    title: "List requests",
    description: "Returns a page of the log of requests that the sandbox has handled, newest " +
      "first, with status and error code: the requests of your programs, and of these tools. A " +
      "request is in the log a second after its response.",
    effect: "read",
    input: { ...ListRequestsQuery.omit({ api_key_id: true, source: true }).shape, limit },
    run: ({ limit, ...filters }, { client, signal }) =>
      fittingPage(limit, (limit) => client.sandbox.listRequests({ ...filters, limit }, { signal })),
  }),
  tool({
    name: "explain_error",
    title: "Explain an error",
    description: "Returns what the documentation says about an error code: its cause and the " +
      "remedy. For invalid_parameter also all test values and event types.",
    effect: "read",
    input: {
      code: mustBe(
        z.enum(ERROR_CODES).describe("code of the error"),
        `one of ${ERROR_CODES.join(", ")}`,
      ),
    },
    run: ({ code }) => Promise.resolve(explainError(code)),
  }),
  tool({
    name: "reset_sandbox",
    title: "Reset the sandbox",
    description:
      "Deletes all payments and transfers with their data and the declared faults, and " +
      "makes the clock the real one. Keys stay, and webhook endpoints unless you say otherwise.",
    effect: "destroy",
    input: {
      webhook_endpoints: z.boolean().default(false)
        .describe("True: the webhook endpoints are deleted too"),
    },
    run: (input, { client, signal }) => client.sandbox.reset(input, { signal }),
  }),
];
