/**
 * Connects the parts of webhooks: endpoints, inboxes, relay and trigger, over one store and one
 * sender.
 */

import type { Clock } from "../../core/clock.ts";
import type { RandomSource } from "../../core/ids.ts";
import type { Store } from "../../store/store.ts";
import { WebhookConnectionPool } from "../../delivery/webhook_connection.ts";
import { sendWebhook, type WebhookRequest } from "../../delivery/webhook_sender.ts";
import type { InboxStore } from "../../store/inbox_store.ts";
import type { WebhookStore } from "../../store/webhook_store.ts";
import type { Send } from "./attempt.ts";
import { Inboxes } from "./inboxes.ts";
import { createRecovery, type Recover } from "./recovery.ts";
import { Relay, type RelayOptions } from "./relay.ts";
import { createTrigger, type Trigger } from "./trigger.ts";
import {
  createWebhookEndpoints,
  type WebhookEndpoints,
  type WebhookSettings,
} from "./webhook_endpoints.ts";

/** Time that `close` waits for attempts under way. Then the relay gives them back. */
const CLOSE_MS = 3_000;

/** The parts of webhooks. */
export interface Webhooks {
  endpoints: WebhookEndpoints;
  inboxes: Inboxes;
  recover: Recover;
  trigger: Trigger;
  relay: Relay;
  /** Wakes the relay and the readers of inboxes after a commit. The promise is the relay's. */
  nudge(): Promise<void>;
  /** Answers waiting reads, waits up to 3 s for attempts under way, and closes connections. */
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
  on_error: (error: unknown) => void;
  on_attempt: RelayOptions["on_attempt"];
  sender?: Partial<WebhookRequest>;
  /** Duration of a claim of a delivery; the relay has a default. */
  lease_ms?: number;
}): Webhooks {
  const pool = new WebhookConnectionPool();
  const { settings, sender } = options;
  const send: Send = (request) =>
    sendWebhook({ ...request, own_hosts: settings.own_hosts, pool, ...sender });
  const relay = new Relay({ ...options, store: options.webhook_store, send });
  const inboxes = new Inboxes({
    store: options.inbox_store,
    master_secret: settings.master_secret,
    clock: options.clock,
    on_error: options.on_error,
  });
  return {
    endpoints: createWebhookEndpoints(options),
    inboxes,
    recover: createRecovery(options.inbox_store),
    trigger: createTrigger({ ...options, send }),
    relay,
    nudge() {
      inboxes.notice();
      return relay.nudge();
    },
    async close() {
      inboxes.close();
      let timer: ReturnType<typeof setTimeout> | undefined;
      const too_long = new Promise<void>((resolve) => timer = setTimeout(resolve, CLOSE_MS));
      await relay.stop(too_long);
      clearTimeout(timer);
      pool.close();
    },
  };
}
