/** The dependencies of the routes. Each isolate has one set, which all its requests share. */

import type { Clock } from "../core/clock.ts";
import type { RandomSource } from "../core/ids.ts";
import type { Vault } from "../core/vault.ts";
import type { CheckoutUrls } from "../domain/checkouts/checkout_url.ts";
import type { Origins } from "../domain/changes/origin.ts";
import type { ApiKeys } from "../domain/keys/api_keys.ts";
import type { Operations } from "../domain/operations/operations.ts";
import type { ProviderAccounts } from "../domain/operations/provider_accounts.ts";
import type { ProviderWorker } from "../domain/operations/provider_worker.ts";
import type { Webhooks } from "../domain/webhooks/webhooks.ts";
import type { CostlyWork } from "../jobs/costly_work.ts";
import type { Places } from "../jobs/places.ts";
import type { CheckoutStore } from "../store/checkout_store.ts";
import type { RateLimits } from "../store/outcome.ts";
import type { ProviderStore } from "../store/provider_store.ts";
import type { RequestLog } from "../store/request_log.ts";
import type { Store } from "../store/store.ts";
import type { WebhookStore } from "../store/webhook_store.ts";
import type { LogLine } from "./log_line.ts";

/** What the routes of both functions use. */
export interface Dependencies {
  store: Store;
  webhook_store: WebhookStore;
  operations: Operations;
  origins: Origins;
  checkout_store: CheckoutStore;
  /** Null without a master secret: then the operations on checkouts return 503. */
  checkout_urls: CheckoutUrls | null;
  /** Null without BANK_DETAILS_KEYS: bank details can be neither sealed nor opened. */
  vault: Vault | null;
  api_keys: ApiKeys;
  /** Null: there are no limits. */
  rate_limits: RateLimits | null;
  /** The gigabytes that the sandboxes of an account may store; null: no limit. */
  storage_gb: number | null;
  places: Places;
  /** The turns of accounts at bodies above `SMALL_BODY_BYTES`. */
  large_bodies: Readonly<Record<"live" | "sandboxes", CostlyWork>>;
  provider_store: ProviderStore;
  provider_accounts: ProviderAccounts;
  provider_worker: ProviderWorker;
  /** Null without a master secret: then the operations on endpoints return 503. */
  webhooks: Webhooks | null;
  /** Bearer token of the internal routes; null: they refuse every request. */
  relay_token: string | null;
  /** Base URL of both functions, without a slash at the end. */
  base_url: string;
  /** URL of the page for payers, or null if there is none. */
  checkout_url: string | null;
  /** URL of the documentation without a slash at its end, or null if there is none. */
  docs_url: string | null;
  clock: Clock;
  random: RandomSource;
  /** Origins that may call from a browser: exact, or `http://localhost:*` for any port. */
  allowed_origins: readonly string[];
  log: (line: LogLine) => void;
  /** The log of requests, which is written behind the responses. */
  request_log: RequestLog;
}
