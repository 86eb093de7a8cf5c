/**
 * The settings of the functions: defaults, the variables that set them, and refused values, which
 * no message repeats.
 */

import assert from "node:assert/strict";
import { readSettings } from "../../shared/functions/read_settings.ts";

const LEAST = {
  PAYMENTS_DB_URL: "postgres://u:hush@db.example.com/d",
  PUBLIC_BASE_URL: "https://api.example.com/functions/v1",
};
const SECRET = "0123456789abcdef".repeat(4);

const read = (variables: Record<string, string>) => readSettings((name) => variables[name]);

Deno.test("readSettings() has defaults, also for empty variables", () => {
  const expected = {
    database_url: LEAST.PAYMENTS_DB_URL,
    base_url: LEAST.PUBLIC_BASE_URL,
    allowed_origins: [],
    allow_private_webhooks: false,
    rate_limit: 100,
    request_log: true,
    account_rate_limit: 400,
    storage_gb: 10,
  };
  assert.deepEqual(read(LEAST), expected);
  const empty = ["RELAY_TOKEN", "WEBHOOK_MASTER_SECRET", "DB_POOL_SIZE", "CONSOLE_ORIGINS"]
    .concat("CHECKOUT_URL", "DOCS_URL");
  assert.deepEqual(
    read({ ...LEAST, ...Object.fromEntries(empty.map((name) => [name, ""])) }),
    expected,
  );
});

Deno.test("readSettings() reads the variables", () => {
  const settings = read({
    SUPABASE_DB_URL: "postgresql://u@db/d?sslmode=require",
    SUPABASE_URL: "https://ref.supabase.co/",
    PAYMENTS_DB_CA: "-----BEGIN CERTIFICATE-----\n",
    CONSOLE_ORIGINS: "https://console.example.com, http://localhost:*",
    CHECKOUT_URL: "https://pay.example.com/page//",
    DOCS_URL: "https://docs.example.com/payments/",
    WEBHOOK_MASTER_SECRET: SECRET,
    RELAY_TOKEN: "!".repeat(16),
    ALLOW_PRIVATE_WEBHOOKS: "true",
    RATE_LIMIT_PER_SECOND: "0",
    RATE_LIMIT_ACCOUNT_PER_SECOND: "250",
    SANDBOX_STORAGE_GB: "3",
    REQUEST_LOG: "false",
    DB_POOL_SIZE: "2",
    DB_PREPARE: "false",
  });
  assert.deepEqual(settings, {
    database_url: "postgresql://u@db/d?sslmode=require",
    database_authority: "-----BEGIN CERTIFICATE-----\n",
    base_url: "https://ref.supabase.co/functions/v1",
    checkout_url: "https://pay.example.com/page",
    docs_url: "https://docs.example.com/payments",
    allowed_origins: ["https://console.example.com", "http://localhost:*"],
    webhook_master_secret: SECRET,
    relay_token: "!".repeat(16),
    allow_private_webhooks: true,
    rate_limit: 0,
    account_rate_limit: 250,
    storage_gb: 3,
    request_log: false,
    max_connections: 2,
    prepare: false,
  });
});

/** A variable and a value that is refused. The message names the variable. */
const REFUSED: readonly [string, string][] = [
  ["PAYMENTS_DB_URL", ""],
  ["PAYMENTS_DB_URL", "db.example.com/d?hush"],
  ["PAYMENTS_DB_URL", "mysql://u:hush@db.example.com/d"],
  ["PAYMENTS_DB_URL", "postgres://u:hush@db.example.com/d?sslmode=yes"],
  ["PAYMENTS_DB_CA", "/etc/hush.pem"],
  ["PUBLIC_BASE_URL", ""],
  ["PUBLIC_BASE_URL", "api.example.com/functions/v1"],
  ["PUBLIC_BASE_URL", "ftp://api.example.com"],
  ["PUBLIC_BASE_URL", "https://api.example.com/?a=b"],
  ["SUPABASE_URL", "ref.supabase.co"],
  ["CHECKOUT_URL", "pay.example.com"],
  ["CHECKOUT_URL", "https://pay.example.com/#cht"],
  ["DOCS_URL", "docs.example.com"],
  ["CONSOLE_ORIGINS", "console.example.com"],
  ["CONSOLE_ORIGINS", "https://console.example.com/"],
  ["CONSOLE_ORIGINS", "https://a.example.com,*"],
  ["WEBHOOK_MASTER_SECRET", "hush"],
  ["RELAY_TOKEN", "hush"],
  ["RELAY_TOKEN", "hush hush hush hush"],
  ["RELAY_TOKEN", "hush".repeat(51)],
  ["ALLOW_PRIVATE_WEBHOOKS", "yes"],
  ["RATE_LIMIT_PER_SECOND", "-1"],
  ["RATE_LIMIT_PER_SECOND", "many"],
  ["RATE_LIMIT_ACCOUNT_PER_SECOND", "-1"],
  ["SANDBOX_STORAGE_GB", "0.5"],
  ["REQUEST_LOG", "0"],
  ["DB_POOL_SIZE", "0"],
  ["DB_POOL_SIZE", "4.5"],
  ["DB_PREPARE", "off"],
];

for (const [name, value] of REFUSED) {
  Deno.test(`readSettings() refuses ${name}=${value}`, () => {
    assert.throws(() => read({ ...LEAST, [name]: value }), ({ message }: Error) => {
      assert.match(message, new RegExp(`^(Set )?${name}\\b`));
      assert.ok(!message.includes("hush"), "a secret must not be repeated");
      return true;
    });
  });
}
