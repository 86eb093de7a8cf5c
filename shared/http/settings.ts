/** The settings that the functions are built from. */

import type { Clock } from "../core/clock.ts";
import type { RandomSource } from "../core/ids.ts";
import type { WebhookRequest } from "../delivery/webhook_sender.ts";
import type { LogLine } from "./request_log.ts";

/** Settings of a function. Only the database and the base URL have no default. */
export interface Settings {
  /** `postgres://…`; a role that is a member of `pay_api`. */
  database_url: string;
  /** PEM of an authority that the database server's certificate may be of. */
  database_authority?: string;
  /** Where both functions are served, without a slash at the end. */
  base_url: string;
  allowed_origins?: readonly string[];
  /** The master secret, from which the secrets of endpoints are derived: at least 32 bytes. */
  webhook_master_secret?: string;
  /** Whether test endpoints may be http and private addresses. */
  allow_private_webhooks?: boolean;
  /** Bearer token of `POST /internal/relay` and `/internal/retention`. */
  relay_token?: string;
  /** How webhooks are sent, where it is not the usual way: a resolver, a test seam. */
  webhook_sender?: Partial<WebhookRequest>;
  /** Requests a second of one key, with bursts of twice that; 0: not limited. */
  rate_limit?: number;
  /** Requests a second of all keys of an environment, with bursts of twice that; 0: not limited. */
  environment_rate_limit?: number;
  /** How long the relay's claim of a delivery lasts; longer than an attempt and its recording. */
  webhook_lease_ms?: number;
  max_connections?: number;
  prepare?: boolean;
  /** The database counts as away if a health check takes longer. */
  away_after_ms?: number;
  clock?: Clock;
  random?: RandomSource;
  log?: (line: LogLine) => void;
  on_statement?: (text: string) => void;
}
