/**
 * The operations of `api-v1-payments` on webhook endpoints, events and deliveries.
 */

import { ApiError } from "../core/errors.ts";
import { renderError } from "../domain/error_body.ts";
import type { Webhooks } from "../domain/webhooks.ts";
import { EmptyQuery } from "../schema/list.ts";
import { EmptyBody } from "../schema/payment.ts";
import {
  CreateWebhookEndpointBody,
  ListEventsQuery,
  ListWebhookDeliveriesQuery,
  ListWebhookEndpointsQuery,
  RotateWebhookSecretBody,
  UpdateWebhookEndpointBody,
} from "../schema/webhook.ts";
import type { Dependencies } from "./dependencies.ts";
import { type Operation, operation, PAYMENTS_FUNCTION } from "./operation.ts";
import { answerPage } from "./page.ts";
import { readOne } from "./read_one.ts";

const writing = {
  home: PAYMENTS_FUNCTION,
  test_only: false,
  scope: "webhooks:write",
  body: EmptyBody,
  query: EmptyQuery,
} as const;

/** Webhook operations with a key. */
export const WEBHOOK_OPERATIONS: readonly Operation[] = [
  operation({
    ...writing,
    method: "POST",
    paths: ["/v1/webhook_endpoints"],
    body: CreateWebhookEndpointBody,
    run: ({ deps, request, body }) => webhooksOf(deps).endpoints.create(request, body),
  }),
  operation({
    ...writing,
    method: "GET",
    paths: ["/v1/webhook_endpoints"],
    scope: "webhooks:read",
    query: ListWebhookEndpointsQuery,
    run: (call) =>
      answerPage(call, "/v1/webhook_endpoints", { kind: "webhook_endpoints", filters: {} }),
  }),
  readOne("/v1/webhook_endpoints/:id", "webhook_endpoints", "webhooks:read"),
  operation({
    ...writing,
    method: "PUT",
    paths: ["/v1/webhook_endpoints/:id"],
    body: UpdateWebhookEndpointBody,
    run: ({ deps, request, id, body }) => webhooksOf(deps).endpoints.update(request, id, body),
  }),
  operation({
    ...writing,
    method: "DELETE",
    paths: ["/v1/webhook_endpoints/:id"],
    run: ({ deps, request, id }) => webhooksOf(deps).endpoints.delete(request, id),
  }),
  operation({
    ...writing,
    method: "POST",
    paths: ["/v1/webhook_endpoints/:id/rotate_secret"],
    body: RotateWebhookSecretBody,
    run: ({ deps, request, id, body }) =>
      webhooksOf(deps).endpoints.rotate(request, id, body.expires_in),
  }),
  operation({
    ...writing,
    method: "GET",
    paths: ["/v1/webhook_deliveries"],
    scope: "webhooks:read",
    query: ListWebhookDeliveriesQuery,
    run(call) {
      const { endpoint_id, event_id, payment_id, status } = call.query;
      return answerPage(call, "/v1/webhook_deliveries", {
        kind: "webhook_deliveries",
        filters: { endpoint_id, event_id, subject_id: payment_id, status },
      });
    },
  }),
  readOne("/v1/webhook_deliveries/:id", "webhook_deliveries", "webhooks:read"),
  operation({
    ...writing,
    method: "POST",
    paths: ["/v1/webhook_deliveries/:id/redeliver"],
    async run({ deps, request, id }) {
      const { access, context, idempotency } = request;
      const error = new ApiError(
        "invalid_state",
        "Cannot redeliver: the endpoint is gone or disabled",
        { current_status: "disabled", allowed: ["enabled"] },
      );
      const refusal = { status: error.status, body: renderError(error, context.request_id) };
      const written = await deps.webhook_store.redeliver(access, id, refusal, idempotency);
      if (!("answer" in written)) throw new Error("unexpected outcome");
      return { answer: written.answer, replayed: written.outcome === "replay" };
    },
  }),
  operation({
    ...writing,
    method: "GET",
    paths: ["/v1/events"],
    scope: "events:read",
    query: ListEventsQuery,
    run(call) {
      const { type, payment_id } = call.query;
      return answerPage(call, "/v1/events", {
        kind: "events",
        filters: { type, subject_id: payment_id },
      });
    },
  }),
  readOne("/v1/events/:id", "events", "events:read"),
];

/** The webhooks of a function. Throws 503 where no master secret is set. */
export function webhooksOf(deps: Dependencies): Webhooks {
  if (deps.webhooks) return deps.webhooks;
  throw new ApiError(
    "service_unavailable",
    "Webhooks are not set up here: the operator has to set WEBHOOK_MASTER_SECRET",
    {},
    { "Retry-After": "3600" },
  );
}
