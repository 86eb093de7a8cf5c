/**
 * The operations on webhook endpoints: create, update, delete, rotate (contract §4). This module
 * decides a change, and the store writes it whole or not at all.
 */

import { type Clock, formatTime } from "../../core/clock.ts";
import { checkEndpointUrl, EndpointUrlError } from "../../core/endpoint_url.ts";
import { ApiError, invalidParameter, tryAgain } from "../../core/errors.ts";
import {
  type CreateWebhookEndpointBody,
  type EndpointDelivery,
  type UpdateWebhookEndpointBody,
  URL_RULES,
} from "../../schema/webhook_body.ts";
import { type DeletedWebhookEndpoint, type WebhookEndpoint } from "../../schema/webhook.ts";
import type { Access } from "../../store/outcome.ts";
import type { Store } from "../../store/store.ts";
import type {
  EndpointChange,
  SecretSource,
  WebhookStore,
  Written,
} from "../../store/webhook_store.ts";
import { DecisionLoop } from "../changes/decision_loop.ts";
import type { RequestContext } from "../changes/event.ts";
import {
  activeSecrets,
  firstSecret,
  revealSecret,
  rotateSecrets,
  secretReference,
} from "./endpoint_secret.ts";
import type { Reply, ServiceRequest } from "../changes/service_request.ts";

/** Most endpoints of one environment (contract §4). */
const MAX_ENDPOINTS = { test: 64, live: 16 };
/**
 * Most endpoints of the disposable sandboxes of an account (contract §5), as in
 * `pay_internal.max_sandbox_endpoints`.
 */
export const MAX_SANDBOX_ENDPOINTS = 2000;

/** The operator's settings of webhooks. */
export interface WebhookSettings {
  /** At least 32 bytes, from the environment of the functions. */
  master_secret: string;
  /** True: endpoints of test keys may have http URLs and private addresses. */
  allow_private: boolean;
  /** Hosts of this service, as in `EndpointUrlRules`. */
  own_hosts: readonly string[];
}

interface StoredEndpoint {
  endpoint: WebhookEndpoint;
  revision: number;
  secrets: SecretSource[];
}

/** Creates the operations over a store. Each throws `ApiError`. */
export function createWebhookEndpoints(
  options: {
    store: Store;
    webhook_store: WebhookStore;
    settings: WebhookSettings;
    clock: Clock;
  },
) {
  const { store, webhook_store, settings, clock } = options;

  const loop = new DecisionLoop(store);
  const nowOf = ({ at_ms }: RequestContext) => ({ at_ms, real_ms: clock() });

  async function write(
    { idempotency, context }: ServiceRequest,
    access: Access,
    change: EndpointChange,
  ): Promise<Reply | null> {
    const written = await webhook_store.changeEndpoint(access, change, idempotency);
    return replyOf(written, context.livemode);
  }

  async function changeExisting(
    request: ServiceRequest,
    id: string,
    decide: (stored: StoredEndpoint) => EndpointChange,
  ): Promise<Reply> {
    const reply = await loop.run(request, "webhook_endpoints", id, ({ body, detail }, access) => {
      const stored = { endpoint: JSON.parse(body), ...JSON.parse(detail!) };
      return write(request, access, decide(stored));
    });
    return revealed(reply, settings.master_secret);
  }

  return {
    async create(request: ServiceRequest, body: CreateWebhookEndpointBody): Promise<Reply> {
      const url = body.url === undefined ? null : checkUrl(body.url, request, settings);
      const secret = firstSecret(request.context);
      const at = formatTime(request.context.at_ms);
      const endpoint: WebhookEndpoint = {
        id: request.context.newId("whe_"),
        object: "webhook_endpoint",
        delivery: body.delivery,
        url,
        events: body.events,
        status: "enabled",
        disabled_reason: null,
        description: body.description ?? null,
        metadata: body.metadata ?? {},
        livemode: request.context.livemode,
        created_at: at,
        updated_at: at,
      };
      const stored = { endpoint, revision: 0, secrets: [secret] };
      const reply = await write(request, request.access, changeTo(stored, 201, secret));
      return revealed(reply!, settings.master_secret);
    },

    update(request: ServiceRequest, id: string, body: UpdateWebhookEndpointBody) {
      const sent_url = body.url === undefined ? null : checkUrl(body.url, request, settings);
      return changeExisting(request, id, ({ endpoint, revision, secrets }) => {
        const { delivery, url } = addressAfter(endpoint, body.delivery, sent_url);
        const status = body.status ?? endpoint.status;
        const updated: WebhookEndpoint = {
          ...endpoint,
          delivery,
          url,
          events: body.events ?? endpoint.events,
          status,
          disabled_reason: status === "enabled"
            ? null
            : endpoint.status === "disabled"
            ? endpoint.disabled_reason
            : "manual",
          description: body.description === undefined ? endpoint.description : body.description,
          metadata: body.metadata ?? endpoint.metadata,
          updated_at: formatTime(request.context.at_ms),
        };
        const live = activeSecrets(secrets, nowOf(request.context));
        return changeTo({ endpoint: updated, revision, secrets: live }, 200);
      });
    },

    delete: (request: ServiceRequest, id: string) =>
      changeExisting(request, id, ({ revision }) => {
        const deleted: DeletedWebhookEndpoint = { id, object: "webhook_endpoint", deleted: true };
        const response = { status: 200, body: JSON.stringify(deleted) };
        return { id, expects_revision: revision, endpoint: null, response };
      }),

    rotate: (request: ServiceRequest, id: string, expires_in_s: number) =>
      changeExisting(request, id, ({ endpoint, revision, secrets }) => {
        const { context } = request;
        const rotated = rotateSecrets(secrets, expires_in_s, context, nowOf(context));
        const updated = { ...endpoint, updated_at: formatTime(context.at_ms) };
        return changeTo({ endpoint: updated, revision, secrets: rotated }, 200, rotated[0]);
      }),
  };
}

/** Returns the way and the URL of an endpoint after an update. */
function addressAfter(
  endpoint: WebhookEndpoint,
  sent_delivery: EndpointDelivery | undefined,
  sent_url: string | null,
): { delivery: EndpointDelivery; url: string | null } {
  const delivery = sent_delivery ?? endpoint.delivery;
  if (delivery === "inbox") {
    if (sent_url !== null) throw invalidParameter("url", `"url" ${URL_RULES.refused}`);
    return { delivery, url: null };
  }
  const url = sent_url ?? endpoint.url;
  if (url === null) throw invalidParameter("url", `"url" ${URL_RULES.required}`);
  return { delivery, url };
}

/** Makes the change to this state of an endpoint. Its response has a reference to `secret`. */
function changeTo(stored: StoredEndpoint, status: number, secret?: SecretSource): EndpointChange {
  const { endpoint, revision, secrets } = stored;
  const { id, url, events, created_at } = endpoint;
  const shown = secret ? { ...endpoint, secret: secretReference(secret) } : endpoint;
  return {
    id,
    expects_revision: revision === 0 ? null : revision,
    endpoint: {
      id,
      delivery: endpoint.delivery,
      url,
      events,
      status: endpoint.status,
      secrets,
      revision: revision + 1,
      created_at,
      body: JSON.stringify(endpoint),
    },
    response: { status, body: JSON.stringify(shown) },
  };
}

function checkUrl(url: string, request: ServiceRequest, settings: WebhookSettings): string {
  try {
    return checkEndpointUrl(url, {
      allow_private: settings.allow_private && !request.context.livemode,
      own_hosts: [...settings.own_hosts],
    }).url.href;
  } catch (error) {
    if (!(error instanceof EndpointUrlError)) throw error;
    throw invalidParameter("url", error.message);
  }
}

function revealed({ response, replayed }: Reply, master_secret: string): Reply {
  const { status, body } = response;
  return { response: { status, body: revealSecret(body, master_secret) }, replayed };
}

/** Returns the reply of a written change, or null if the change must be decided again. */
function replyOf(written: Written, livemode: boolean): Reply | null {
  switch (written.outcome) {
    case "committed":
    case "replay":
      return { response: written.response, replayed: written.outcome === "replay" };
    case "stale":
      return null;
    case "calling_off":
      throw tryAgain(
        "service_unavailable",
        "The older deliveries of this endpoint are still being cancelled: try again",
      );
    case "unread":
      throw new ApiError(
        "invalid_state",
        "Too many deliveries in the inbox are not acknowledged to send all of them to a URL: " +
          "read the inbox first",
        { current_status: "inbox", allowed: ["inbox"] },
      );
    case "crowded":
      throw new ApiError(
        "invalid_parameter",
        `The disposable sandboxes of this account have ${MAX_SANDBOX_ENDPOINTS} webhook ` +
          "endpoints, which is the limit: delete sandboxes that you no longer use",
        { param: "url" },
      );
    case "full":
      throw new ApiError(
        "invalid_parameter",
        `There are ${MAX_ENDPOINTS[livemode ? "live" : "test"]} webhook endpoints, which is the ` +
          "limit: delete one first",
        { param: "url" },
      );
  }
}
