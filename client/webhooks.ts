/**
 * Webhook endpoints, events and deliveries (contract §4).
 */

import { Inbox, type ReadInboxParams } from "./inbox.ts";
import type { Dispute } from "./disputes.ts";
import { type List, listOf, type ListParams } from "./list.ts";
import type { Payment } from "./payment.ts";
import type { Refund } from "./payments.ts";
import type { ReadOptions, RequestOptions } from "./request_options.ts";
import type { Transport } from "./transport.ts";
import type { Transfer } from "./transfers.ts";
import type { Metadata } from "./values.ts";
import type {
  AttemptError,
  DeliveryStatus,
  DisabledReason,
  DisputeEventType,
  EndpointDelivery,
  EndpointEventType,
  EndpointStatus,
  EventPattern,
  PaymentEventType,
  RefundEventType,
  TransferEventType,
} from "./vocabulary.ts";

/** The resource that the events of each type show, as it was then. */
export type EventObjects =
  & Record<PaymentEventType, Payment>
  & Record<RefundEventType, Refund>
  & Record<DisputeEventType, Dispute>
  & Record<TransferEventType, Transfer>
  & Record<EndpointEventType, WebhookEndpoint>;

/** The type of an event. A newer version of the service can send types that are not listed here. */
export type EventType = keyof EventObjects;

/** A subscription of an endpoint: an event type, all types of a resource, or all types. */
export type Subscription = EventType | EventPattern;

/** An event of a certain type. It shows the resource at the time of the event. */
export interface EventOf<Type extends EventType> {
  /** `evt_…`. The same in every delivery of the event. */
  id: string;
  object: "event";
  type: Type;
  api_version: "v1";
  created_at: string;
  livemode: boolean;
  /** Number of the event among those of its resource, from 1. */
  sequence: number;
  /** True if `sandbox.trigger` sent the event. Nothing has changed then. */
  triggered?: true | undefined;
  data: { object: EventObjects[Type] };
  /** The request that caused the event. Its members are null if no request did. */
  request: { id: string | null; idempotency_key: string | null };
}

/** An event of any type. A comparison of `type` narrows the type of `data.object`. */
export type Event = { [Type in EventType]: EventOf<Type> }[EventType];

/** `GET /v1/events` */
export interface ListEventsParams extends ListParams {
  type?: EventType | undefined;
  /** Cannot be combined with `transfer_id`. */
  payment_id?: string | undefined;
  transfer_id?: string | undefined;
}

/** `POST /v1/webhook_endpoints` */
export type CreateWebhookEndpointInput =
  & (
    | {
      delivery?: "url" | undefined;
      /** An `https` URL of a public host. The operator can allow other URLs for test keys. */
      url: string;
    }
    | {
      /** The endpoint has no URL: you read its deliveries with `inbox`. */
      delivery: "inbox";
      url?: undefined;
    }
  )
  & EndpointFields;

/** The fields of a new endpoint beside its URL. */
export interface EndpointFields {
  /** By default all event types. */
  events?: Subscription[] | undefined;
  /** At most 500 characters. */
  description?: string | undefined;
  metadata?: Metadata | undefined;
}

/** `PUT /v1/webhook_endpoints/{id}`. Only the given fields change. */
export interface UpdateWebhookEndpointInput {
  /**
   * `inbox` removes the URL. `url` needs a `url`, and sends the deliveries to it that are in the
   * inbox and not acknowledged.
   */
  delivery?: EndpointDelivery | undefined;
  url?: string | undefined;
  events?: Subscription[] | undefined;
  status?: EndpointStatus | undefined;
  description?: string | null | undefined;
  metadata?: Metadata | undefined;
}

/** `POST /v1/webhook_endpoints/{id}/rotate_secret` */
export interface RotateSecretInput {
  /**
   * Seconds until the older secrets expire, 0 to 604800 (7 days). The default 0 ends them at once.
   * An endpoint has at most 5 valid secrets: a rotation that would add a sixth ends the oldest.
   */
  expires_in?: number | undefined;
}

/** `POST /v1/webhook_endpoints/{id}/recover` */
export interface RecoverInput {
  /** RFC 3339, at most 30 days ago. */
  since: string;
  /** RFC 3339. By default the present. */
  until?: string | undefined;
  /**
   * `failed`: deliveries that have failed or were cancelled. `all`: also those that the endpoint
   * has got. By default `failed`.
   */
  status?: "failed" | "all" | undefined;
  /** `next_cursor` of the previous response. */
  starting_after?: string | undefined;
}

/** The response to a recovery. */
export interface Recovery {
  object: "recovery";
  endpoint_id: string;
  /** Number of deliveries that are `pending` again. */
  count: number;
  /** Whether the period has more deliveries. */
  has_more: boolean;
  /** The `starting_after` of the next call. */
  next_cursor: string | null;
}

/** A webhook endpoint. */
export interface WebhookEndpoint {
  /** `whe_…` */
  id: string;
  object: "webhook_endpoint";
  delivery: EndpointDelivery;
  /** Null for an inbox. */
  url: string | null;
  events: Subscription[];
  status: EndpointStatus;
  disabled_reason: DisabledReason | null;
  description: string | null;
  metadata: Metadata;
  livemode: boolean;
  created_at: string;
  updated_at: string;
  /** Only `retrieve` and `list` show it, while the endpoint is enabled and its newest attempt failed. */
  failing?: true | undefined;
}

/** An endpoint with its new secret. The API shows a secret only once: store it. */
export interface WebhookEndpointWithSecret extends WebhookEndpoint {
  /** `whsec_…`, for `verifyWebhook`. */
  secret: string;
}

/** A deleted endpoint. */
export interface DeletedWebhookEndpoint {
  id: string;
  object: "webhook_endpoint";
  deleted: true;
}

/** One HTTP request of a delivery. */
export interface DeliveryAttempt {
  /** Number of the attempt, from 1. */
  number: number;
  at: string;
  /** Null if there was no response. */
  response_status: number | null;
  /** Rounded up to a multiple of 100. */
  duration_ms: number;
  /**
   * Null if there was a response. `crashed`: the service stopped three times while it sent this.
   */
  error: AttemptError | null;
}

/** The request of an attempt in a sandbox, and the beginning of its response. */
export interface DeliveryExchange {
  /** Number of the attempt. */
  attempt: number;
  request: {
    url: string;
    headers: Record<string, string>;
    /** The exact text that the signature covers. */
    body: string;
  };
  /** Null if there was no response. */
  response: {
    /** The first 1 024 bytes: status line, headers and body as they came. */
    text: string;
    /** True if the response had more bytes. */
    truncated: boolean;
  } | null;
}

/** The delivery of an event to an endpoint, with all attempts. */
export interface WebhookDelivery {
  /** `whd_…` */
  id: string;
  object: "webhook_delivery";
  event_id: string;
  event_type: EventType;
  endpoint_id: string;
  payment_id: string | null;
  status: DeliveryStatus;
  attempts: DeliveryAttempt[];
  next_attempt_at: string | null;
  created_at: string;
  /** The pending delivery of the same payment and endpoint that this one waits for. */
  blocked_by?: string | undefined;
  /**
   * The newest five attempts, oldest first. Only `retrieve` shows them, in a sandbox, for 7 days.
   */
  exchanges?: DeliveryExchange[] | undefined;
}

/** `GET /v1/webhook_deliveries` */
export interface ListWebhookDeliveriesParams extends ListParams {
  endpoint_id?: string | undefined;
  event_id?: string | undefined;
  /** Cannot be combined with `transfer_id`. */
  payment_id?: string | undefined;
  transfer_id?: string | undefined;
  status?: DeliveryStatus | undefined;
}

const ENDPOINTS = "/api-v1-payments/v1/webhook_endpoints";
const DELIVERIES = "/api-v1-payments/v1/webhook_deliveries";
const EVENTS = "/api-v1-payments/v1/events";

/** Operations on webhook endpoints. A failed one throws a `PaymentsError`. */
export class WebhookEndpoints {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Creates an endpoint. Store its secret, because the API does not show it again. */
  create(
    input: CreateWebhookEndpointInput,
    options?: RequestOptions,
  ): Promise<WebhookEndpointWithSecret> {
    return this.#transport.send({ method: "POST", path: [ENDPOINTS], body: input }, options);
  }

  /** Retrieves an endpoint. */
  retrieve(id: string, options?: ReadOptions): Promise<WebhookEndpoint> {
    return this.#transport.send({ method: "GET", path: [ENDPOINTS, id] }, options);
  }

  /** Lists endpoints, newest first. */
  list(params?: ListParams, options?: ReadOptions): List<WebhookEndpoint> {
    return listOf(this.#transport, [ENDPOINTS], params, options);
  }

  /** Changes the given fields of an endpoint. */
  update(
    id: string,
    input: UpdateWebhookEndpointInput,
    options?: RequestOptions,
  ): Promise<WebhookEndpoint> {
    return this.#transport.send(
      { method: "PUT", path: [ENDPOINTS, id], body: input },
      options,
    );
  }

  /**
   * Deletes an endpoint and cancels its pending deliveries. To delete many endpoints, await a page
   * with `limit: 100`, delete its items, and repeat. An iteration cannot continue after an endpoint
   * that has been deleted.
   */
  delete(id: string, options?: RequestOptions): Promise<DeletedWebhookEndpoint> {
    return this.#transport.send({ method: "DELETE", path: [ENDPOINTS, id] }, options);
  }

  /** Adds a secret to an endpoint. The older secrets expire after `expires_in` seconds. */
  rotateSecret(
    id: string,
    input: RotateSecretInput = {},
    options?: RequestOptions,
  ): Promise<WebhookEndpointWithSecret> {
    const path = [ENDPOINTS, id, "rotate_secret"];
    return this.#transport.send({ method: "POST", path, body: input }, options);
  }

  /** Reads the deliveries of an endpoint that has an inbox. Await it, or iterate over it. */
  inbox(id: string, params?: ReadInboxParams, options?: ReadOptions): Inbox {
    return new Inbox(this.#transport, [ENDPOINTS, id, "inbox"], params, options);
  }

  /**
   * Delivers again what an endpoint has missed, at most 5 000 deliveries a call. While `has_more`
   * is true, call it again with `next_cursor` as `starting_after`.
   */
  recover(id: string, input: RecoverInput, options?: RequestOptions): Promise<Recovery> {
    const path = [ENDPOINTS, id, "recover"];
    return this.#transport.send({ method: "POST", path, body: input }, options);
  }
}

/** Operations on deliveries. A failed one throws a `PaymentsError`. */
export class WebhookDeliveries {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Retrieves a delivery with its attempts. */
  retrieve(id: string, options?: ReadOptions): Promise<WebhookDelivery> {
    return this.#transport.send({ method: "GET", path: [DELIVERIES, id] }, options);
  }

  /** Lists deliveries, newest first. */
  list(params?: ListWebhookDeliveriesParams, options?: ReadOptions): List<WebhookDelivery> {
    return listOf(this.#transport, [DELIVERIES], params, options);
  }

  /** Sends the event of a delivery again. The event keeps its id. */
  redeliver(id: string, options?: RequestOptions): Promise<WebhookDelivery> {
    const path = [DELIVERIES, id, "redeliver"];
    return this.#transport.send({ method: "POST", path }, options);
  }
}

/** Operations on events. A failed one throws a `PaymentsError`. */
export class Events {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Retrieves an event. */
  retrieve(id: string, options?: ReadOptions): Promise<Event> {
    return this.#transport.send({ method: "GET", path: [EVENTS, id] }, options);
  }

  /** Lists events, newest first. */
  list(params?: ListEventsParams, options?: ReadOptions): List<Event> {
    return listOf(this.#transport, [EVENTS], params, options);
  }
}
