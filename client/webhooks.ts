/**
 * Webhook endpoints, events and deliveries (contract §4).
 */

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
  & Record<TransferEventType, Transfer>
  & Record<EndpointEventType, WebhookEndpoint>;

/** Kind of an event. A newer service may send one that is not listed here. */
export type EventType = keyof EventObjects;

/** What an endpoint can ask for: kinds, all kinds of a resource, or everything. */
export type Subscription = EventType | EventPattern;

/** What happened, with the resource as of then. */
export interface EventOf<Type extends EventType> {
  /** `evt_…`; the same in every delivery. */
  id: string;
  object: "event";
  type: Type;
  api_version: "v1";
  created_at: string;
  livemode: boolean;
  /** Rises by one with each event of one resource. */
  sequence: number;
  /** On an event that the sandbox was asked for: nothing has changed. */
  triggered?: true | undefined;
  data: { object: EventObjects[Type] };
  /** The request that caused it; members are null when no request did. */
  request: { id: string | null; idempotency_key: string | null };
}

/** An event of any kind; `type` tells what `data.object` is. */
export type Event = { [Type in EventType]: EventOf<Type> }[EventType];

/** `GET /v1/events` */
export interface ListEventsParams extends ListParams {
  type?: EventType | undefined;
  payment_id?: string | undefined;
}

/** `POST /v1/webhook_endpoints` */
export interface CreateWebhookEndpointInput {
  /** `https` on a public host; the operator may allow others for test keys. */
  url: string;
  /** Everything unless given. */
  events?: Subscription[] | undefined;
  /** At most 500 characters. */
  description?: string | undefined;
  metadata?: Metadata | undefined;
}

/** `PUT /v1/webhook_endpoints/{id}`: what is given is changed. */
export interface UpdateWebhookEndpointInput {
  url?: string | undefined;
  events?: Subscription[] | undefined;
  status?: EndpointStatus | undefined;
  description?: string | null | undefined;
  metadata?: Metadata | undefined;
}

/** `POST /v1/webhook_endpoints/{id}/rotate_secret` */
export interface RotateSecretInput {
  /**
   * Seconds for which the older secrets still sign, 0 to 604800. 0, the default, ends all at once.
   * At most 5 secrets sign: a rotation that would make a sixth ends the oldest.
   */
  expires_in?: number | undefined;
}

/** A webhook endpoint. */
export interface WebhookEndpoint {
  /** `whe_…` */
  id: string;
  object: "webhook_endpoint";
  url: string;
  events: Subscription[];
  status: EndpointStatus;
  disabled_reason: DisabledReason | null;
  description: string | null;
  metadata: Metadata;
  livemode: boolean;
  created_at: string;
  updated_at: string;
}

/** An endpoint with its new secret: shown on creation and rotation, and never again. */
export interface WebhookEndpointWithSecret extends WebhookEndpoint {
  /** `whsec_…`, for `verifyWebhook`. */
  secret: string;
}

/** An endpoint that is no more. */
export interface DeletedWebhookEndpoint {
  id: string;
  object: "webhook_endpoint";
  deleted: true;
}

/** One HTTP try of a delivery. */
export interface DeliveryAttempt {
  number: number;
  at: string;
  response_status: number | null;
  /** Rounded up to 100. */
  duration_ms: number;
  error: AttemptError | null;
}

/** An event on its way to one endpoint. */
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
}

/** `GET /v1/webhook_deliveries` */
export interface ListWebhookDeliveriesParams extends ListParams {
  endpoint_id?: string | undefined;
  event_id?: string | undefined;
  payment_id?: string | undefined;
  status?: DeliveryStatus | undefined;
}

const ENDPOINTS = "/api-v1-payments/v1/webhook_endpoints";
const DELIVERIES = "/api-v1-payments/v1/webhook_deliveries";
const EVENTS = "/api-v1-payments/v1/events";

/** Operations on webhook endpoints. Each throws a `PaymentsError`. */
export class WebhookEndpoints {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Registers an address. Keep the secret. */
  create(
    input: CreateWebhookEndpointInput,
    options?: RequestOptions,
  ): Promise<WebhookEndpointWithSecret> {
    return this.#transport.send({ method: "POST", path: [ENDPOINTS], body: input }, options);
  }

  /** Gets an endpoint. */
  retrieve(id: string, options?: ReadOptions): Promise<WebhookEndpoint> {
    return this.#transport.send({ method: "GET", path: [ENDPOINTS, id] }, options);
  }

  /** Lists endpoints, newest first. */
  list(params?: ListParams, options?: ReadOptions): List<WebhookEndpoint> {
    return listOf(this.#transport, [ENDPOINTS], params, options);
  }

  /** Changes what is given. */
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
   * Deletes an endpoint; what is still to be sent to it is cancelled. To delete many, await a page of
   * 100 and delete what it holds: a list that is iterated cannot go on from an endpoint that is gone.
   */
  delete(id: string, options?: RequestOptions): Promise<DeletedWebhookEndpoint> {
    return this.#transport.send({ method: "DELETE", path: [ENDPOINTS, id] }, options);
  }

  /** Gives an endpoint a new secret. */
  rotateSecret(
    id: string,
    input: RotateSecretInput = {},
    options?: RequestOptions,
  ): Promise<WebhookEndpointWithSecret> {
    const path = [ENDPOINTS, id, "rotate_secret"];
    return this.#transport.send({ method: "POST", path, body: input }, options);
  }
}

/** Operations on deliveries. Each throws a `PaymentsError`. */
export class WebhookDeliveries {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Gets a delivery with its attempts. */
  retrieve(id: string, options?: ReadOptions): Promise<WebhookDelivery> {
    return this.#transport.send({ method: "GET", path: [DELIVERIES, id] }, options);
  }

  /** Lists deliveries, newest first. */
  list(params?: ListWebhookDeliveriesParams, options?: ReadOptions): List<WebhookDelivery> {
    return listOf(this.#transport, [DELIVERIES], params, options);
  }

  /** Sends the event again. */
  redeliver(id: string, options?: RequestOptions): Promise<WebhookDelivery> {
    const path = [DELIVERIES, id, "redeliver"];
    return this.#transport.send({ method: "POST", path }, options);
  }
}

/** Operations on events. Each throws a `PaymentsError`. */
export class Events {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Gets an event. */
  retrieve(id: string, options?: ReadOptions): Promise<Event> {
    return this.#transport.send({ method: "GET", path: [EVENTS, id] }, options);
  }

  /** Lists events, newest first. */
  list(params?: ListEventsParams, options?: ReadOptions): List<Event> {
    return listOf(this.#transport, [EVENTS], params, options);
  }
}
