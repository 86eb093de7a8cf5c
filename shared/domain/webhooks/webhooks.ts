/**
 * Connects the parts of webhooks: endpoints, inboxes, dispatcher and trigger, over one store and
 * one sender. Endpoints, sender and trigger load with their first use (ADR 0009).
 */

import type { Clock } from "../../core/clock.ts";
import type { Origins } from "../changes/origin.ts";
import type { RandomSource } from "../../core/ids.ts";
import type { TriggerWebhookBody } from "../../schema/webhook_body.ts";
import type { Store } from "../../store/store.ts";
import { once } from "../../core/once.ts";
import type { WebhookConnectionPool } from "../../delivery/webhook_connection.ts";
import type { WebhookRequest } from "../../delivery/webhook_sender.ts";
import type { InboxStore } from "../../store/inbox_store.ts";
import type { WebhookStore } from "../../store/webhook_store.ts";
import type { ServiceRequest } from "../changes/service_request.ts";
import type { Send } from "./attempt.ts";
import { type HoldPlace, Inboxes } from "./inboxes.ts";
import { Dispatcher, type DispatcherOptions } from "./dispatcher.ts";
import { recoveryIn } from "./recovery.ts";
import type { WebhookSettings } from "./webhook_endpoints.ts";

/** Time that `close` waits for attempts under way. Then the dispatcher gives them back. */
const CLOSE_MS = 3_000;

export type Webhooks = ReturnType<typeof createWebhooks>;

/** Builds the parts. `sender` overrides settings of the sender, such as its resolver. */
export function createWebhooks(options: {
  store: Store;
  webhook_store: WebhookStore;
  inbox_store: InboxStore;
  settings: WebhookSettings;
  clock: Clock;
  random: RandomSource;
  origins: Origins;
  /** Holds the reads of inboxes that wait. */
  hold: HoldPlace;
  on_error: (error: unknown) => void;
  on_attempt: DispatcherOptions["on_attempt"];
  sender?: Partial<WebhookRequest>;
  /** Duration of the lease of a delivery; the dispatcher has a default. */
  lease_ms?: number;
}) {
  const { settings, sender } = options;
  let pool: WebhookConnectionPool | undefined;
  const openSender = once(async (): Promise<Send> => {
    const { sendWebhook } = await import("../../delivery/webhook_sender.ts");
    const { WebhookConnectionPool } = await import("../../delivery/webhook_connection.ts");
    const kept = pool = new WebhookConnectionPool();
    return (request) =>
      sendWebhook({ ...request, own_hosts: settings.own_hosts, pool: kept, ...sender });
  });
  const send: Send = async (request) => await (await openSender())(request);
  const openTrigger = once(async () => {
    const { createTrigger } = await import("./trigger.ts");
    return createTrigger({ ...options, send });
  });
  const dispatcher = new Dispatcher({ ...options, store: options.webhook_store, send });
  const inboxes = new Inboxes({
    store: options.inbox_store,
    master_secret: settings.master_secret,
    clock: options.clock,
    hold: options.hold,
    on_error: options.on_error,
  });
  return {
    endpoints: once(async () => {
      const { createWebhookEndpoints } = await import("./webhook_endpoints.ts");
      return createWebhookEndpoints(options);
    }),
    inboxes,
    recover: recoveryIn(options.inbox_store),
    trigger: async (request: ServiceRequest, body: TriggerWebhookBody) =>
      await (await openTrigger())(request, body),
    dispatcher,
    /** Notifies the dispatcher and readers of inboxes. The promise is that of the dispatcher. */
    notify(): Promise<void> {
      inboxes.notice();
      return dispatcher.notify();
    },
    /** Ends waiting reads, waits up to 3 s for attempts under way, and closes connections. */
    async close(): Promise<void> {
      inboxes.close();
      let timer: ReturnType<typeof setTimeout> | undefined;
      const too_long = new Promise<void>((resolve) => timer = setTimeout(resolve, CLOSE_MS));
      await dispatcher.stop(too_long);
      clearTimeout(timer);
      pool?.close();
    },
  };
}
