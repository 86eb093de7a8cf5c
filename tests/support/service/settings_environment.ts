/** Turns the settings of a test into the environment variables of the functions. */

import type { Settings } from "../../../shared/functions/settings.ts";
import { testServer } from "../database/database.ts";
import { NeedsInternals } from "./needs_internals.ts";

/**
 * Returns the variables. With a pooler, the database URL leads through it.
 * @throws {NeedsInternals} for a setting without a variable
 */
export function environmentOf(settings: Settings): Record<string, string> {
  const {
    database_url,
    base_url,
    console_url,
    docs_url,
    allowed_origins = [],
    webhook_master_secret,
    relay_token,
    allow_private_webhooks = false,
    rate_limit = 0,
    account_rate_limit = 0,
    storage_gb = 0,
    request_log = false,
    max_connections,
    prepare,
    ...others
  } = settings;
  const [other] = Object.keys(others);
  if (other) throw new NeedsInternals(`the setting ${other}`);
  // A test that reads the log makes the functions write it at once.
  if (request_log) throw new NeedsInternals("the setting request_log");
  const { pooler_port, superuser_url } = testServer();
  const url = new URL(database_url);
  // A test with its own proxy in front of the database keeps the proxy's port.
  const is_pooled = pooler_port !== null && url.port === new URL(superuser_url).port;
  if (is_pooled) url.port = String(pooler_port);
  const is_prepared = is_pooled ? false : prepare;
  return {
    PAYMENTS_DB_URL: url.href,
    PUBLIC_BASE_URL: base_url,
    ...(console_url && { CONSOLE_URL: console_url }),
    ...(docs_url && { DOCS_URL: docs_url }),
    CONSOLE_ORIGINS: allowed_origins.join(","),
    ...(webhook_master_secret && { WEBHOOK_MASTER_SECRET: webhook_master_secret }),
    ...(relay_token && { RELAY_TOKEN: relay_token }),
    ALLOW_PRIVATE_WEBHOOKS: String(allow_private_webhooks),
    RATE_LIMIT_PER_SECOND: String(rate_limit),
    RATE_LIMIT_ACCOUNT_PER_SECOND: String(account_rate_limit),
    SANDBOX_STORAGE_GB: String(storage_gb),
    REQUEST_LOG: "false",
    ...(max_connections && { DB_POOL_SIZE: String(max_connections) }),
    ...(is_prepared !== undefined && { DB_PREPARE: String(is_prepared) }),
  };
}
