/**
 * The operations of `api-v1-sandbox`: test keys only, each with and without `/v1` in front.
 */

import { EmptyBody, EmptyQuery } from "../schema/empty.ts";
import {
  AdvancePaymentBody,
  AuthenticatePaymentBody,
  CreatePaymentBody,
  Payment,
} from "../schema/payment.ts";
import { SandboxReset } from "../schema/service.ts";
import { AdvanceTransferBody, Transfer } from "../schema/transfer.ts";
import { TriggerWebhookBody, WebhookDelivery } from "../schema/webhook.ts";
import { type Operation, operation, SANDBOX_FUNCTION } from "./operation.ts";
import { webhooksOf } from "./webhook_operations.ts";

const sandbox = {
  home: SANDBOX_FUNCTION,
  group: "Sandbox",
  method: "POST",
  scope: "sandbox:write",
  test_only: true,
  query: EmptyQuery,
  answer: Payment,
  status: 200,
} as const;

/** Moves a payment through its lifecycle; served at two addresses. */
export const advancePayment: Operation = operation({
  ...sandbox,
  id: "advancePayment",
  summary: "Advance a payment",
  description:
    "Moves it to another status without waiting. To the status that it has: nothing happens.",
  paths: ["/payments/:id/advance", "/v1/payments/:id/advance"],
  body: AdvancePaymentBody,
  errors: ["invalid_state"],
  run: ({ deps, request, id, body }) => deps.payments.advance(request, id, body),
});

/** Everything that `api-v1-sandbox` answers. */
export const SANDBOX_OPERATIONS: readonly Operation[] = [
  operation({
    ...sandbox,
    id: "createSandboxPayment",
    summary: "Create a payment in a chosen state",
    description:
      "The same as the create of the payments function, but it answers 201 with the payment " +
      "whatever its status.",
    paths: ["/payments", "/v1/payments"],
    body: CreatePaymentBody,
    status: 201,
    run: ({ deps, request, body }) => deps.payments.create(request, body, false),
  }),
  advancePayment,
  operation({
    ...sandbox,
    id: "authenticatePayment",
    summary: "Authenticate the payer",
    description:
      "What the payer's bank answers to 3-D Secure. Success completes the payment; failure " +
      "declines it and answers 402.",
    paths: ["/payments/:id/authenticate", "/v1/payments/:id/authenticate"],
    body: AuthenticatePaymentBody,
    errors: ["invalid_state", "authentication_failed"],
    run: ({ deps, request, id, body }) => deps.payments.authenticate(request, id, body),
  }),
  operation({
    ...sandbox,
    id: "advanceTransfer",
    summary: "Advance a transfer",
    description: "Moves a `pending` transfer to another status without waiting.",
    paths: ["/transfers/:id/advance", "/v1/transfers/:id/advance"],
    body: AdvanceTransferBody,
    answer: Transfer,
    errors: ["invalid_state"],
    run: ({ deps, request, id, body }) => deps.transfers.advance(request, id, body.to),
  }),
  operation({
    ...sandbox,
    id: "triggerWebhook",
    summary: "Deliver an event now",
    description:
      "One synchronous attempt, signed with the endpoint's real secret. The answer is the " +
      "delivery, also when the receiver failed. No payment changes. At most 16 attempts of a " +
      "sandbox and 32 of an account are under way at a time. Beyond that the answer is 429 " +
      "`rate_limited`.",
    paths: ["/webhooks/trigger", "/v1/webhooks/trigger"],
    body: TriggerWebhookBody,
    answer: WebhookDelivery,
    errors: ["not_found"],
    run: ({ deps, request, body }) => webhooksOf(deps).trigger(request, body),
  }),
  operation({
    ...sandbox,
    id: "resetSandbox",
    summary: "Reset the sandbox",
    description:
      "Deletes every payment, and all that belongs to them, of the key's sandbox. Keys and " +
      "webhook endpoints stay.",
    paths: ["/reset", "/v1/reset"],
    body: EmptyBody,
    answer: SandboxReset,
    run: ({ deps, request }) => deps.payments.reset(request),
  }),
];
