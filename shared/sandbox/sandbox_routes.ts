/**
 * The operations of `api-v1-sandbox`. They take test keys only. Each has a path with and a path
 * without `/v1`.
 */

import { payCheckoutRoute } from "../http/checkout_routes.ts";
import { createPayment } from "../http/create_payment.ts";
import { ReadChangesQuery } from "../schema/changes.ts";
import { DueQuery, SetClockBody } from "../schema/clock_body.ts";
import { AuthenticatePaymentBody, CreatePaymentBody } from "../schema/payment_body.ts";
import { AdvanceRefundBody } from "../schema/refund_body.ts";
import { ResetSandboxBody } from "../schema/service.ts";
import { AdvanceTransferBody } from "../schema/transfer_body.ts";
import { TriggerWebhookBody } from "../schema/webhook_body.ts";
import { refuseRealCard } from "../domain/providers/instrument.ts";
import { advancePayment, SANDBOX_ROUTE } from "./advance_route.ts";
import { DISPOSABLE_SANDBOX_ROUTES } from "./disposable_sandbox_routes.ts";
import { FAULT_ROUTES } from "./fault_routes.ts";
import { type Route, route } from "../http/route.ts";
import { getRequest, listRequests } from "../http/request_routes.ts";
import { webhooksOf } from "../http/webhook_routes.ts";
import { sandboxRoute } from "./sandbox.ts";

/** All operations of `api-v1-sandbox`. */
export const SANDBOX_ROUTES: readonly Route[] = [
  route({
    ...SANDBOX_ROUTE,
    id: "createSandboxPayment",
    summary: "Create a payment in a chosen state",
    description:
      "Creates a payment as the payments function does, but always returns 201 with the payment, " +
      "also after a decline.",
    paths: ["/payments", "/v1/payments"],
    body: CreatePaymentBody,
    refuse: refuseRealCard,
    status: 201,
    run: ({ deps, request, body }) => createPayment(deps, request, body, false),
  }),
  advancePayment,
  sandboxRoute({
    ...SANDBOX_ROUTE,
    id: "authenticatePayment",
    summary: "Authenticate the payer",
    description: "Simulates the result of 3-D Secure. `success` completes the payment. " +
      "`failure` declines it and returns 402.",
    paths: ["/payments/:id/authenticate", "/v1/payments/:id/authenticate"],
    body: AuthenticatePaymentBody,
    errors: ["invalid_state", "authentication_failed"],
    run: ({ deps, request, id, body }) => deps.sandbox.moves.authenticate(request, id, body),
  }),
  payCheckoutRoute,
  sandboxRoute({
    ...SANDBOX_ROUTE,
    id: "advanceRefund",
    summary: "Advance a refund",
    description:
      "Completes a `pending` refund or makes it fail. Refunds wait if the payment was created " +
      'with `settlement: "manual"`. A `completed` refund can fail too, as a payer\'s bank can ' +
      "refuse it days later: its amount can be refunded again.",
    paths: ["/refunds/:id/advance", "/v1/refunds/:id/advance"],
    body: AdvanceRefundBody,
    response: "Refund",
    errors: ["invalid_state"],
    run: ({ deps, request, id, body }) => deps.sandbox.moves.advanceRefund(request, id, body),
  }),
  sandboxRoute({
    ...SANDBOX_ROUTE,
    id: "advanceTransfer",
    summary: "Advance a transfer",
    description:
      "Moves a `pending` transfer to another status without waiting. A transfer to a bank " +
      "account that is `completed` can fail too, as its bank can return it later.",
    paths: ["/transfers/:id/advance", "/v1/transfers/:id/advance"],
    body: AdvanceTransferBody,
    response: "Transfer",
    errors: ["invalid_state"],
    run: ({ deps, request, id, body }) => deps.sandbox.moves.advanceTransfer(request, id, body),
  }),
  route({
    ...SANDBOX_ROUTE,
    id: "triggerWebhook",
    summary: "Deliver an event now",
    description:
      "Makes one synchronous attempt, signed with the endpoint's real secret. The response is " +
      "200 with the delivery, also if the receiver fails. No payment changes. At most 16 " +
      "attempts of a sandbox and 32 of an account are under way at a time; one more is 429 " +
      "`rate_limited`.",
    paths: ["/webhooks/trigger", "/v1/webhooks/trigger"],
    body: TriggerWebhookBody,
    response: "WebhookDelivery",
    errors: ["not_found"],
    run: ({ deps, request, body }) => webhooksOf(deps).trigger(request, body),
  }),
  sandboxRoute({
    ...SANDBOX_ROUTE,
    id: "readTranscript",
    method: "GET",
    summary: "Read the transcript",
    description:
      "The run of a seeded sandbox so far, as newline-delimited JSON: compare it with a file in " +
      "your repository. It keeps the first 10 000 requests. Reading it is no part of the run.",
    paths: ["/transcript", "/v1/transcript"],
    response: "Transcript",
    media_type: "text/plain",
    errors: ["invalid_state"],
    async run({ deps, request: { access } }) {
      const { begin, rest } = await deps.sandbox.seeded_store.transcript(access);
      return { response: { status: 200, body: begin }, replayed: false, rest };
    },
  }),
  sandboxRoute({
    ...SANDBOX_ROUTE,
    id: "readChanges",
    scope: null,
    method: "GET",
    summary: "Wait for changes",
    description:
      "Tells a page whether it has to read again: anything in the sandbox that it shows has " +
      "changed after the cursor, such as a status, a delivery, a fault, the clock or the log of " +
      "requests. Reading it is no part of a seeded run and is not in the log.",
    paths: ["/changes", "/v1/changes"],
    query: ReadChangesQuery,
    response: "Changes",
    unlogged: true,
    run: async ({ deps, request: { access }, query, signal }) => ({
      status: 200,
      body: JSON.stringify(await deps.sandbox.changes.read(access, query, signal)),
    }),
  }),
  sandboxRoute({
    ...SANDBOX_ROUTE,
    id: "getClock",
    scope: null,
    summary: "Retrieve the clock",
    description: "The clock of the key's sandbox: the real one until it is set.",
    method: "GET",
    paths: ["/clock", "/v1/clock"],
    response: "Clock",
    run: async ({ deps, request }) => ({
      status: 200,
      body: await deps.sandbox.clock.read(request),
    }),
  }),
  sandboxRoute({
    ...SANDBOX_ROUTE,
    id: "listDue",
    summary: "List what is due next",
    description:
      "Counts the things that happen by themselves when the clock gets there, by kind, and tells " +
      "when the first is due. It leaves out their consequences, such as a retry after a delivery " +
      "that fails.",
    method: "GET",
    paths: ["/clock/due", "/v1/clock/due"],
    query: DueQuery,
    response: "Due",
    run: async ({ deps, request, query }) => ({
      status: 200,
      body: await deps.sandbox.clock.due(request, query.until),
    }),
  }),
  sandboxRoute({
    ...SANDBOX_ROUTE,
    id: "setClock",
    summary: "Set or advance the clock",
    description:
      "Everything of the sandbox obeys its clock, and no other sandbox notices. An advance does " +
      "what becomes due, in the order of time, and returns the numbers. A request works for " +
      "about 2 seconds. If `has_more` is true, send `to` with the value of `target` again. An " +
      "advance that is not complete is never lost: the next request goes on from its end. A " +
      "clock never goes back; a reset makes it the real one. Signatures always carry the real " +
      "time.",
    paths: ["/clock", "/v1/clock"],
    body: SetClockBody,
    response: "ClockAdvance",
    run: ({ deps, request, body }) => deps.sandbox.clock.set(request, body),
  }),
  sandboxRoute({
    ...SANDBOX_ROUTE,
    id: "resetSandbox",
    summary: "Reset the sandbox",
    description:
      "Deletes all payments, refunds, transfers, ledger entries, events and deliveries of the " +
      "key's sandbox, and its declared faults. Keys stay, and webhook endpoints unless " +
      "`webhook_endpoints` is true.",
    paths: ["/reset", "/v1/reset"],
    without_faults: true,
    frees_storage: true,
    body: ResetSandboxBody,
    response: "SandboxReset",
    run: ({ deps, request, body }) => deps.sandbox.moves.reset(request, body),
  }),
  ...DISPOSABLE_SANDBOX_ROUTES,
  listRequests,
  getRequest,
  ...FAULT_ROUTES,
];
