/**
 * Connects the parts of webhooks: endpoints, relay and trigger, over one store and one sender.
 */

import type { Clock } from "../../core/clock.ts";
import type { RandomSource } from "../../core/ids.ts";
import type { Store } from "../../store/store.ts";
import { WebhookConnectionPool } from "../../delivery/webhook_connection.ts";
import { sendWebhook, type WebhookRequest } from "../../delivery/webhook_sender.ts";
import type { WebhookStore } from "../../store/webhook_store.ts";
import type { Send } from "./attempt.ts";
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
  trigger: Trigger;
  relay: Relay;
  /** Waits up to 3 s for attempts under way, and closes connections. */
  close(): Promise<void>;
}

/** Builds the parts. `sender` overrides settings of the sender, such as its resolver. */
export function createWebhooks(options: {
  store: Store;
  webhook_store: WebhookStore;
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
  return {
    endpoints: createWebhookEndpoints(options),
    trigger: createTrigger({ ...options, send }),
    relay,
    async close() {
      let timer: ReturnType<typeof setTimeout> | undefined;
      const too_long = new Promise<void>((resolve) => timer = setTimeout(resolve, CLOSE_MS));
      await relay.stop(too_long);
      clearTimeout(timer);
      pool.close();
    },
  };
}
