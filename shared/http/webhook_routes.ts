/** The operations of `api-v1-payments` on webhook endpoints, events and deliveries. */

import { ApiError } from "../core/errors.ts";
import { renderError } from "../domain/changes/error_body.ts";
import type { Webhooks } from "../domain/webhooks/webhooks.ts";
import { ReadInboxQuery, RecoverDeliveriesBody } from "../schema/inbox_body.ts";
import {
  CreateWebhookEndpointBody,
  ListEventsQuery,
  ListWebhookDeliveriesQuery,
  ListWebhookEndpointsQuery,
  RotateWebhookSecretBody,
  UpdateWebhookEndpointBody,
} from "../schema/webhook_body.ts";
import type { Dependencies } from "./dependencies.ts";
import { type Route, route } from "./route.ts";
import { listRoute } from "./page.ts";
import { readOne } from "./read_one.ts";

const writing = {
  group: "Webhook endpoints",
  scope: "webhooks:write",
  response: "WebhookEndpoint",
} as const;

/** The operations on webhook endpoints, events and deliveries. */
export const WEBHOOK_ROUTES: readonly Route[] = [
  route({
    ...writing,
    id: "createWebhookEndpoint",
    summary: "Register a webhook endpoint",
    description:
      "Only this response shows the `secret` of the endpoint. An environment has at most 16 " +
      "endpoints; one more is 400. An endpoint with `delivery: inbox` has no URL: its receiver " +
      "reads the deliveries.",
    method: "POST",
    paths: ["/v1/webhook_endpoints"],
    body: CreateWebhookEndpointBody,
    status: 201,
    run: async ({ deps, request, body }) =>
      (await webhooksOf(deps).endpoints()).create(request, body),
  }),
  listRoute({
    ...writing,
    id: "listWebhookEndpoints",
    summary: "List webhook endpoints",
    paths: ["/v1/webhook_endpoints"],
    scope: "webhooks:read",
    query: ListWebhookEndpointsQuery,
    kind: "webhook_endpoints",
  }),
  readOne({
    ...writing,
    id: "getWebhookEndpoint",
    summary: "Get a webhook endpoint",
    paths: ["/v1/webhook_endpoints/:id"],
    kind: "shown_webhook_endpoints",
    scope: "webhooks:read",
  }),
  route({
    ...writing,
    id: "updateWebhookEndpoint",
    summary: "Change a webhook endpoint",
    method: "PUT",
    paths: ["/v1/webhook_endpoints/:id"],
    body: UpdateWebhookEndpointBody,
    errors: ["invalid_state"],
    run: async ({ deps, request, id, body }) =>
      (await webhooksOf(deps).endpoints()).update(request, id, body),
  }),
  route({
    ...writing,
    id: "deleteWebhookEndpoint",
    summary: "Delete a webhook endpoint",
    method: "DELETE",
    paths: ["/v1/webhook_endpoints/:id"],
    response: "DeletedWebhookEndpoint",
    run: async ({ deps, request, id }) => (await webhooksOf(deps).endpoints()).delete(request, id),
  }),
  route({
    ...writing,
    id: "rotateWebhookSecret",
    summary: "Rotate the secret of a webhook endpoint",
    description: "Makes a new secret. The older secrets also sign deliveries until they expire.",
    method: "POST",
    paths: ["/v1/webhook_endpoints/:id/rotate_secret"],
    body: RotateWebhookSecretBody,
    run: async ({ deps, request, id, body }) =>
      (await webhooksOf(deps).endpoints()).rotate(request, id, body.expires_in),
  }),
  route({
    ...writing,
    id: "readInbox",
    summary: "Read the inbox of a webhook endpoint",
    description:
      "Returns the deliveries after the cursor, oldest first, each signed as an endpoint with a " +
      "URL would get it. Waits for a delivery if there is none. `after` acknowledges the " +
      "deliveries up to it, so it needs the scope `webhooks:write`. A read without it needs " +
      "`webhooks:read` and changes nothing.",
    method: "GET",
    paths: ["/v1/webhook_endpoints/:id/inbox"],
    scope: "webhooks:read",
    parameter_scopes: { after: "webhooks:write" },
    query: ReadInboxQuery,
    response: "Inbox",
    errors: ["invalid_state"],
    unlogged: true,
    run: ({ deps, request, id, query, signal }) =>
      webhooksOf(deps).inboxes.read(request, id, query, signal),
  }),
  route({
    ...writing,
    id: "recoverDeliveries",
    summary: "Deliver the missed events of a webhook endpoint again",
    description:
      "Makes the failed and cancelled deliveries of a period `pending` again, at most 5 000 for " +
      "each request. To continue, send `next_cursor` as `starting_after` while `has_more` is true.",
    method: "POST",
    paths: ["/v1/webhook_endpoints/:id/recover"],
    body: RecoverDeliveriesBody,
    response: "Recovery",
    status: 202,
    errors: ["invalid_state"],
    run: ({ deps, request, id, body }) => webhooksOf(deps).recover(request, id, body),
  }),
  listRoute({
    ...writing,
    id: "listWebhookDeliveries",
    group: "Webhook deliveries",
    summary: "List webhook deliveries",
    paths: ["/v1/webhook_deliveries"],
    scope: "webhooks:read",
    query: ListWebhookDeliveriesQuery,
    response: "WebhookDelivery",
    kind: "webhook_deliveries",
    filters: ({ payment_id, transfer_id, instrument_id, ...others }) => ({
      subject_id: payment_id ?? transfer_id ?? instrument_id,
      ...others,
    }),
  }),
  readOne({
    ...writing,
    id: "getWebhookDelivery",
    group: "Webhook deliveries",
    summary: "Get a webhook delivery",
    description:
      "In a sandbox the response has `exchanges`: what the newest five attempts sent, and the " +
      "first 1 024 bytes of each response. They are kept for 7 days.",
    paths: ["/v1/webhook_deliveries/:id"],
    kind: "webhook_deliveries",
    scope: "webhooks:read",
    response: "WebhookDelivery",
  }),
  route({
    ...writing,
    id: "redeliverWebhook",
    group: "Webhook deliveries",
    summary: "Deliver an event again",
    description:
      "Makes a delivery `pending` again, whatever its status. One that is `available` in an " +
      "inbox stays as it is.",
    method: "POST",
    paths: ["/v1/webhook_deliveries/:id/redeliver"],
    response: "WebhookDelivery",
    errors: ["invalid_state"],
    async run({ deps, request, id }) {
      const { access, context, idempotency } = request;
      const error = new ApiError(
        "invalid_state",
        "Cannot redeliver: the endpoint is disabled or deleted. Enable a disabled endpoint first",
        { current_status: "disabled", allowed: ["enabled"] },
      );
      const refusal = { status: error.status, body: renderError(error, context) };
      const written = await deps.webhook_store.redeliver(access, id, refusal, idempotency);
      if (!("response" in written)) throw new Error("unexpected outcome");
      return { response: written.response, replayed: written.outcome === "replay" };
    },
  }),
  listRoute({
    ...writing,
    id: "listEvents",
    group: "Events",
    summary: "List events",
    description: "The service keeps events for 30 days.",
    paths: ["/v1/events"],
    scope: "events:read",
    query: ListEventsQuery,
    response: "Event",
    kind: "events",
    filters: ({ payment_id, transfer_id, ...others }) => ({
      subject_id: payment_id ?? transfer_id,
      ...others,
    }),
  }),
  readOne({
    ...writing,
    id: "getEvent",
    group: "Events",
    summary: "Get an event",
    paths: ["/v1/events/:id"],
    kind: "events",
    scope: "events:read",
    response: "Event",
  }),
];

/** Returns the webhooks of a function. Throws 503 if no master secret is set. */
export function webhooksOf(deps: Dependencies): Webhooks {
  if (deps.webhooks) return deps.webhooks;
  throw new ApiError(
    "service_unavailable",
    "Webhooks are not set up here: ask the operator to set WEBHOOK_MASTER_SECRET",
    {},
    { "Retry-After": "3600" },
  );
}
