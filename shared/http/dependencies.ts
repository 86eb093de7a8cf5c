/**
 * What the functions are built from, and how it is read from the environment. One set per isolate:
 * the pool is shared by its requests, nothing else outlives one.
 */

import { type Clock, systemClock } from "../core/clock.ts";
import { type RandomSource, systemRandom } from "../core/ids.ts";
import { MASTER_SECRET_MIN_BYTES } from "../core/webhook_signature.ts";
import { type ApiKeys, createApiKeys } from "../domain/api_keys.ts";
import { Changes } from "../domain/changes.ts";
import { createPayments, type Payments } from "../domain/payments.ts";
import { createTransfers, type Transfers } from "../domain/transfers.ts";
import { createWebhooks, type Webhooks } from "../domain/webhooks.ts";
import { createApiKeyStore } from "../store/api_key_store.ts";
import { openDatabase } from "../store/database.ts";
import { createStore, type Store } from "../store/store.ts";
import type { WebhookRequest } from "../store/webhook_sender.ts";
import { createWebhookStore, type WebhookStore } from "../store/webhook_store.ts";
import { inBackground } from "./background.ts";
import { attemptLine, failedTurn, type LogLine, writeLogLine } from "./request_log.ts";

/** What both functions need. */
export interface Dependencies {
  store: Store;
  webhook_store: WebhookStore;
  payments: Payments;
  transfers: Transfers;
  api_keys: ApiKeys;
  /** Requests a second of one key; 0: not limited. */
  rate_limit: number;
  /** Null when no master secret is set: then there are no endpoints and nothing is delivered. */
  webhooks: Webhooks | null;
  /** What wakes the relay by HTTP; null: nothing does. */
  relay_token: string | null;
  /** Where both functions are served, without a slash at the end. */
  base_url: string;
  clock: Clock;
  random: RandomSource;
  /** Origins that may call from a browser: exact, or `http://localhost:*` for any port. */
  allowed_origins: readonly string[];
  log: (line: LogLine) => void;
}

/** What can be set; everything has a default but the database. */
export interface Settings {
  /** `postgres://…`; a role that is a member of `pay_api`. */
  database_url: string;
  /** Where both functions are served, without a slash at the end. */
  base_url: string;
  allowed_origins?: readonly string[];
  /** What endpoints' secrets are derived from: at least 32 bytes. */
  webhook_master_secret?: string;
  /** Whether test endpoints may be http and private addresses. */
  allow_private_webhooks?: boolean;
  /** Bearer token of `POST /internal/relay` and `/internal/retention`. */
  relay_token?: string;
  /** How webhooks are sent, where it is not the usual way: a resolver, a test seam. */
  webhook_sender?: Partial<WebhookRequest>;
  /** Requests a second of one key, with bursts of twice that; 0: not limited. */
  rate_limit?: number;
  /** How long the relay's claim of a delivery lasts; longer than an attempt and its recording. */
  webhook_lease_ms?: number;
  max_connections?: number;
  prepare?: boolean;
  clock?: Clock;
  random?: RandomSource;
  log?: (line: LogLine) => void;
  on_statement?: (text: string) => void;
}

/** Dependencies that can be given back. */
export type OpenDependencies = Dependencies & { close(): Promise<void> };

/** Builds the dependencies of a set of settings. */
export function createDependencies(settings: Settings): OpenDependencies {
  const { max_connections, prepare, on_statement } = settings;
  const database = openDatabase({
    url: settings.database_url,
    ...(max_connections !== undefined && { max_connections }),
    ...(prepare !== undefined && { prepare }),
    ...(on_statement && { on_statement }),
  });
  const clock = settings.clock ?? systemClock;
  const random = settings.random ?? systemRandom;
  const log = settings.log ?? writeLogLine;
  const wakeRelay = () => {
    if (webhooks) inBackground(webhooks.relay.nudge());
  };
  const store = createStore(database, wakeRelay);
  const changes = new Changes(store);
  const webhook_store = createWebhookStore(database, wakeRelay);
  const { webhook_master_secret: master_secret, webhook_sender, webhook_lease_ms } = settings;
  const webhooks = master_secret === undefined ? null : createWebhooks({
    store,
    webhook_store,
    settings: {
      master_secret,
      allow_private: settings.allow_private_webhooks ?? false,
      own_hosts: ownHosts(new URL(settings.base_url)),
    },
    clock,
    random,
    on_error: (error) => log(failedTurn(clock(), error)),
    on_attempt: (delivery, { record }) => log(attemptLine(delivery, record)),
    ...(webhook_sender && { sender: webhook_sender }),
    ...(webhook_lease_ms !== undefined && { lease_ms: webhook_lease_ms }),
  });
  return {
    store,
    webhook_store,
    payments: createPayments({ store, changes, base_url: settings.base_url }),
    transfers: createTransfers(changes),
    api_keys: createApiKeys(createApiKeyStore(database)),
    webhooks,
    relay_token: settings.relay_token ?? null,
    rate_limit: settings.rate_limit ?? 0,
    base_url: settings.base_url,
    clock,
    random,
    allowed_origins: settings.allowed_origins ?? [],
    log,
    async close() {
      await webhooks?.close();
      await database.close();
    },
  };
}

/**
 * Builds the dependencies from environment variables:
 * `PAYMENTS_DB_URL` (else `SUPABASE_DB_URL`), `PUBLIC_BASE_URL` (else `SUPABASE_URL` and
 * `/functions/v1`), `CONSOLE_ORIGINS` (comma-separated), `WEBHOOK_MASTER_SECRET`, `RELAY_TOKEN`,
 * `ALLOW_PRIVATE_WEBHOOKS` (`true`), `RATE_LIMIT_PER_SECOND` (100; 0 is off), `DB_POOL_SIZE` (4), `DB_PREPARE`
 * (`false` behind a transaction pooler; the default is `true`, at port 6543 `false`). Throws when no database is named, or a secret is too short to be one.
 */
export function openDependencies(
  env: (name: string) => string | undefined,
  overrides: Partial<Settings> = {},
): OpenDependencies {
  const database_url = env("PAYMENTS_DB_URL") ?? env("SUPABASE_DB_URL");
  if (!database_url) throw new Error("Set PAYMENTS_DB_URL (or SUPABASE_DB_URL) to the database");
  const base_url = env("PUBLIC_BASE_URL") ?? `${env("SUPABASE_URL") ?? ""}/functions/v1`;
  const master_secret = env("WEBHOOK_MASTER_SECRET");
  if (master_secret && new TextEncoder().encode(master_secret).length < MASTER_SECRET_MIN_BYTES) {
    throw new Error(`WEBHOOK_MASTER_SECRET must have at least ${MASTER_SECRET_MIN_BYTES} bytes`);
  }
  const relay_token = env("RELAY_TOKEN");
  const max_connections = readWhole("DB_POOL_SIZE", env("DB_POOL_SIZE"));
  const prepare = readPrepare(env("DB_PREPARE"));
  const rate_limit = readWhole("RATE_LIMIT_PER_SECOND", env("RATE_LIMIT_PER_SECOND"));
  return createDependencies({
    database_url,
    base_url: base_url.replace(/\/+$/, ""),
    allowed_origins: (env("CONSOLE_ORIGINS") ?? "").split(",").map((o) => o.trim()).filter(Boolean),
    ...(master_secret && { webhook_master_secret: master_secret }),
    ...(relay_token && { relay_token }),
    allow_private_webhooks: env("ALLOW_PRIVATE_WEBHOOKS") === "true",
    rate_limit: rate_limit ?? DEFAULT_RATE_LIMIT,
    ...(max_connections && { max_connections }),
    ...(prepare !== undefined && { prepare }),
    ...overrides,
  });
}

/** Requests a second of one key unless the operator says otherwise (contract §5). */
const DEFAULT_RATE_LIMIT = 100;

function readWhole(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (/^\d{1,6}$/.test(text)) return Number(text);
  throw new Error(`${name} "${text}" is not a whole number`);
}

function readPrepare(text: string | undefined): boolean | undefined {
  if (text === undefined) return undefined;
  if (text === "true" || text === "false") return text === "true";
  throw new Error(`DB_PREPARE "${text}" is neither true nor false`);
}

/** The names that lead to us: on loopback all of them. */
function ownHosts({ host, hostname, port }: URL): string[] {
  if (hostname !== "127.0.0.1" && hostname !== "localhost") return [host];
  return ["127.0.0.1", "localhost", "[::1]"].map((name) => port ? `${name}:${port}` : name);
}
