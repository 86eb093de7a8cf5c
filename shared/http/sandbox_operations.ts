/**
 * The operations of `api-v1-sandbox`: test keys only, each with and without `/v1` in front.
 */

import {
  AdvancePaymentBody,
  AuthenticatePaymentBody,
  CreatePaymentBody,
  EmptyBody,
} from "../schema/payment.ts";
import { EmptyQuery } from "../schema/list.ts";
import { AdvanceTransferBody } from "../schema/transfer.ts";
import { TriggerWebhookBody } from "../schema/webhook.ts";
import { type Operation, operation, SANDBOX_FUNCTION } from "./operation.ts";
import { webhooksOf } from "./webhook_operations.ts";

const sandbox = {
  home: SANDBOX_FUNCTION,
  method: "POST",
  scope: "sandbox:write",
  test_only: true,
  query: EmptyQuery,
} as const;

/** Moves a payment through its lifecycle; served at two addresses. */
export const advancePayment: Operation = operation({
  ...sandbox,
  paths: ["/payments/:id/advance", "/v1/payments/:id/advance"],
  body: AdvancePaymentBody,
  run: ({ deps, request, id, body }) => deps.payments.advance(request, id, body),
});

/** Everything that `api-v1-sandbox` answers. */
export const SANDBOX_OPERATIONS: readonly Operation[] = [
  operation({
    ...sandbox,
    paths: ["/payments", "/v1/payments"],
    body: CreatePaymentBody,
    run: ({ deps, request, body }) => deps.payments.create(request, body, false),
  }),
  advancePayment,
  operation({
    ...sandbox,
    paths: ["/payments/:id/authenticate", "/v1/payments/:id/authenticate"],
    body: AuthenticatePaymentBody,
    run: ({ deps, request, id, body }) => deps.payments.authenticate(request, id, body),
  }),
  operation({
    ...sandbox,
    paths: ["/transfers/:id/advance", "/v1/transfers/:id/advance"],
    body: AdvanceTransferBody,
    run: ({ deps, request, id, body }) => deps.transfers.advance(request, id, body.to),
  }),
  operation({
    ...sandbox,
    paths: ["/webhooks/trigger", "/v1/webhooks/trigger"],
    body: TriggerWebhookBody,
    run: ({ deps, request, body }) => webhooksOf(deps).trigger(request, body),
  }),
  operation({
    ...sandbox,
    paths: ["/reset", "/v1/reset"],
    body: EmptyBody,
    run: ({ deps, request }) => deps.payments.reset(request),
  }),
];
