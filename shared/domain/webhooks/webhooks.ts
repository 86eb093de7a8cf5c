/**
 * Connects the parts of webhooks: endpoints, inboxes, dispatcher and trigger, over one store and
 * one sender.
 */

import type { Clock } from "../../core/clock.ts";
import type { Origins } from "../changes/origin.ts";
import type { RandomSource } from "../../core/ids.ts";
import type { Store } from "../../store/store.ts";
import { WebhookConnectionPool } from "../../delivery/webhook_connection.ts";
import { sendWebhook, type WebhookRequest } from "../../delivery/webhook_sender.ts";
import type { InboxStore } from "../../store/inbox_store.ts";
import type { WebhookStore } from "../../store/webhook_store.ts";
import type { Send } from "./attempt.ts";
import { type HoldPlace, Inboxes } from "./inboxes.ts";
import { Dispatcher, type DispatcherOptions } from "./dispatcher.ts";
import { createRecovery, type Recover } from "./recovery.ts";
import { createTrigger, type Trigger } from "./trigger.ts";
import {
  createWebhookEndpoints,
  type WebhookEndpoints,
  type WebhookSettings,
} from "./webhook_endpoints.ts";

/** Time that `close` waits for attempts under way. Then the dispatcher gives them back. */
const CLOSE_MS = 3_000;

export interface Webhooks {
  endpoints: WebhookEndpoints;
  inboxes: Inboxes;
  recover: Recover;
  trigger: Trigger;
  dispatcher: Dispatcher;
  /** Notifies the dispatcher and the readers of inboxes. The promise is that of the dispatcher. */
  notify(): Promise<void>;
  /** Ends waiting reads, waits up to 3 s for attempts under way, and closes connections. */
  close(): Promise<void>;
}

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
}): Webhooks {
  const pool = new WebhookConnectionPool();
  const { settings, sender } = options;
  const send: Send = (request) =>
    sendWebhook({ ...request, own_hosts: settings.own_hosts, pool, ...sender });
  const dispatcher = new Dispatcher({ ...options, store: options.webhook_store, send });
  const inboxes = new Inboxes({
    store: options.inbox_store,
    master_secret: settings.master_secret,
    clock: options.clock,
    hold: options.hold,
    on_error: options.on_error,
  });
  return {
    endpoints: createWebhookEndpoints(options),
    inboxes,
    recover: createRecovery(options.inbox_store),
    trigger: createTrigger({ ...options, send }),
    dispatcher,
    notify() {
      inboxes.notice();
      return dispatcher.notify();
    },
    async close() {
      inboxes.close();
      let timer: ReturnType<typeof setTimeout> | undefined;
      const too_long = new Promise<void>((resolve) => timer = setTimeout(resolve, CLOSE_MS));
      await dispatcher.stop(too_long);
      clearTimeout(timer);
      pool.close();
    },
  };
}
