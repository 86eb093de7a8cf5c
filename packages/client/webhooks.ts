/** Webhook endpoints, events and deliveries (contract §4). */

import { Inbox, type ReadInboxParams } from "./inbox.ts";
import type { ReadOptions, RequestOptions } from "./request_options.ts";
import { Collection } from "./resource.ts";
import type {
  CreateWebhookEndpointInput,
  DeletedWebhookEndpoint,
  Dispute,
  DisputeEventType,
  EndpointEventType,
  EventType,
  Instrument,
  InstrumentEventType,
  ListEventsParams,
  ListWebhookDeliveriesParams,
  Payment,
  PaymentEventType,
  RecoverInput,
  Recovery,
  Refund,
  RefundEventType,
  RotateSecretInput,
  Transfer,
  TransferEventType,
  UpdateWebhookEndpointInput,
  WebhookDelivery,
  WebhookEndpoint,
  WebhookEndpointWithSecret,
} from "./resources.ts";

/** The resource that the events of each type show, as it was then. */
export type EventObjects =
  & Record<PaymentEventType, Payment>
  & Record<RefundEventType, Refund>
  & Record<DisputeEventType, Dispute>
  & Record<TransferEventType, Transfer>
  & Record<InstrumentEventType, Instrument>
  & Record<EndpointEventType, WebhookEndpoint>;

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

/** Operations on webhook endpoints. A failed one throws a `PaymentsError`. */
export class WebhookEndpoints extends Collection<WebhookEndpoint> {
  protected readonly path = "/api-v1-payments/v1/webhook_endpoints";

  /** Creates an endpoint. Store its secret, because the API does not show it again. */
  create(
    input: CreateWebhookEndpointInput,
    options?: RequestOptions,
  ): Promise<WebhookEndpointWithSecret> {
    return this.transport.post([this.path], input, options);
  }

  /** Changes the given fields of an endpoint. */
  update(
    id: string,
    input: UpdateWebhookEndpointInput,
    options?: RequestOptions,
  ): Promise<WebhookEndpoint> {
    return this.transport.send(
      { method: "PUT", path: [this.path, id], body: input },
      options,
    );
  }

  /**
   * Deletes an endpoint and cancels its pending deliveries. To delete many endpoints, await a page
   * with `limit: 100`, delete its items, and repeat. An iteration cannot continue after an endpoint
   * that has been deleted.
   */
  delete(id: string, options?: RequestOptions): Promise<DeletedWebhookEndpoint> {
    return this.transport.delete([this.path, id], options);
  }

  /** Adds a secret to an endpoint. The older secrets expire after `expires_in` seconds. */
  rotateSecret(
    id: string,
    input: RotateSecretInput = {},
    options?: RequestOptions,
  ): Promise<WebhookEndpointWithSecret> {
    return this.transport.post([this.path, id, "rotate_secret"], input, options);
  }

  /** Reads the deliveries of an endpoint that has an inbox. Await it, or iterate over it. */
  inbox(id: string, params?: ReadInboxParams, options?: ReadOptions): Inbox {
    return new Inbox(this.transport, [this.path, id, "inbox"], params, options);
  }

  /**
   * Delivers again what an endpoint has missed, at most 5 000 deliveries a call. While `has_more`
   * is true, call it again with `next_cursor` as `starting_after`.
   */
  recover(id: string, input: RecoverInput, options?: RequestOptions): Promise<Recovery> {
    return this.transport.post([this.path, id, "recover"], input, options);
  }
}

/** Operations on deliveries with their attempts. A failed one throws a `PaymentsError`. */
export class WebhookDeliveries extends Collection<WebhookDelivery, ListWebhookDeliveriesParams> {
  protected readonly path = "/api-v1-payments/v1/webhook_deliveries";

  /** Sends the event of a delivery again. The event keeps its id. */
  redeliver(id: string, options?: RequestOptions): Promise<WebhookDelivery> {
    return this.transport.post([this.path, id, "redeliver"], undefined, options);
  }
}

/** Operations on events. A failed one throws a `PaymentsError`. */
export class Events extends Collection<Event, ListEventsParams> {
  protected readonly path = "/api-v1-payments/v1/events";
}
