/** The settings of the functions. */

import type { Clock } from "../core/clock.ts";
import type { RandomSource } from "../core/ids.ts";
import type { Vault } from "../core/vault.ts";
import type { WebhookRequest } from "../delivery/webhook_sender.ts";
import type { LogLine } from "../http/log_line.ts";

/** Settings of a function. Only the database and the base URL have no default. */
export interface Settings {
  /** `postgres://…`. Its role is a member of `pay_api`. */
  database_url: string;
  /** Certificate authority of the database server in PEM, in addition to those of the runtime. */
  database_authority?: string;
  /** Base URL of both functions, without a slash at the end. */
  base_url: string;
  /** URL of the page for payers without a slash at its end; absent: it is not hosted. */
  checkout_url?: string;
  /** URL of the documentation without a slash at its end, for `doc_url` of errors. */
  docs_url?: string;
  allowed_origins?: readonly string[];
  /** The master secret, from which the secrets of endpoints are derived: at least 32 bytes. */
  webhook_master_secret?: string;
  /** True: endpoints of test keys may have http URLs and private addresses. */
  allow_private_webhooks?: boolean;
  /** Seals the bank details of live payers and payees; absent: none can be kept. */
  vault?: Vault;
  /** Bearer token of `POST /internal/relay` and `/internal/retention`. */
  relay_token?: string;
  /** Overrides settings of the webhook sender, such as its resolver. */
  webhook_sender?: Partial<WebhookRequest>;
  /** Requests a second of one key, with bursts of twice that; 0: no limit. */
  rate_limit?: number;
  /**
   * Requests a second of all live keys of an account, and of all keys of its sandboxes, with bursts
   * of twice that; 0: no limit.
   */
  account_rate_limit?: number;
  /** The gigabytes (2^30 bytes) that the sandboxes of an account may store; 0: no limit. */
  storage_gb?: number;
  /** True: the requests of sandboxes are logged for their merchants. By default false. */
  request_log?: boolean;
  /** Duration of the dispatcher's lease of a delivery: longer than an attempt and its recording. */
  webhook_lease_ms?: number;
  max_connections?: number;
  prepare?: boolean;
  /** The database counts as unavailable if a health check takes longer. */
  unavailable_after_ms?: number;
  /** Reads a secret of a provider by the name of its variable, which begins with `PROVIDER_`. */
  provider_secret?: (name: string) => string | undefined;
  /** Longest time that an operation of a provider takes. */
  provider_deadline_ms?: number;
  /** Longest time of a request that advances a clock, in a sandbox without a seed. */
  advance_ms?: number;
  clock?: Clock;
  random?: RandomSource;
  log?: (line: LogLine) => void;
  on_statement?: (text: string) => void;
}
