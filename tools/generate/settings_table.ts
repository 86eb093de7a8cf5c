/** The tables of docs/operations/configuration.md: each variable, its default and its meaning. */

import { MASTER_SECRET_MIN_BYTES } from "../../shared/core/webhook_signature.ts";
import {
  DEFAULT_RATE_LIMIT,
  DEFAULT_STORAGE_GB,
  KEYS_AT_LIMIT,
} from "../../shared/functions/read_settings.ts";
import { replaceBlock } from "./generated_block.ts";
import { renderTable } from "./markdown_table.ts";

type Setting = [name: string, default_value: string, meaning: string];

/** The variables of the commands that run on the operator's machine. */
const OF_COMMANDS: readonly Setting[] = [
  ["PORT", "`54321`; `8000` of `serve`", "port; `0` takes a free one"],
  ["HOST", "`127.0.0.1`", "the IP address at which `deno task serve` listens"],
  ["CONSOLE", "`0`", "`1`: `deno task serve` has the console, too"],
  ["DATA_DIR", "`.local`", "data, logs, `credentials.json` and `webhook_master_secret`"],
  ["DATABASE_URL", "the embedded server", "another PostgreSQL 15 or newer"],
  [
    "CACHE_DIR",
    "that of the account",
    "PostgreSQL's programs and prepared databases, for all data folders " +
    "([places](../testing.md#the-cache))",
  ],
  ["LOG", "`0`", "`1` sends log lines to standard output, not to `server.log` in `DATA_DIR`"],
  [
    "TEST_DATABASE_URL",
    "a server made for the run",
    "the server that the tests use; its user can create databases and roles",
  ],
  [
    "TEST_FUNCTIONS",
    "in the tests' process",
    "`cells`: in two cells behind HAProxy, on Deno 2.1.4; `cells-pooled`: behind pgbouncer too",
  ],
  [
    "STRIPE_TEST_KEY",
    "none",
    "`sk_test_…` or `rk_test_…`: the account in whose test mode `deno task test " +
    "--live-card` makes payments",
  ],
  ["STRIPE_TEST_URL", "Stripe's", "a program on this machine in place of Stripe, for that command"],
  ["AWS_ACCESS_KEY_ID", "none", "key of the bucket of `deno task archive`"],
  ["AWS_SECRET_ACCESS_KEY", "none", "its secret"],
  ["AWS_REGION", "`us-east-1`", "its region"],
  ["AWS_ENDPOINT_URL", "Amazon's", "another store that speaks S3"],
  [
    "CELLS_FROM_URL",
    "none",
    "the database of the cell from which `deno task cells` moves an account",
  ],
  ["CELLS_TO_URL", "none", "the database of the cell to which it moves"],
];

/** The variables of the functions, in a local start and in a deployment. */
const OF_FUNCTIONS: readonly Setting[] = [
  [
    "PAYMENTS_DB_URL",
    "`SUPABASE_DB_URL`",
    "URL of the database; the local start sets it. [Connection " +
    "strings](deploy.md#connection-strings) describes `sslmode`",
  ],
  [
    "PAYMENTS_DB_CA",
    "the runtime's authorities",
    "one more certificate authority (PEM) for the database's certificate",
  ],
  [
    "PUBLIC_BASE_URL",
    "`SUPABASE_URL` with `/functions/v1`",
    "the beginning of `Location` and `next_action`; the local start sets it",
  ],
  [
    "CONSOLE_ORIGINS",
    "none; locally any port of localhost",
    "browser origins that may call, comma-separated; `http://localhost:*`: any port",
  ],
  [
    "CONSOLE_URL",
    "none; locally `/console` of the local start",
    "URL of the hosted console: `next_action.url` of the sandbox leads to its page of 3-D Secure",
  ],
  [
    "DOCS_URL",
    "none; locally `/docs` of the local start",
    "URL of the [hosted documentation](deploy.md#the-documentation), to which `doc_url` of " +
    "an error leads. Without it errors have no `doc_url`. Set it for `deno task providers` " +
    "too",
  ],
  [
    "WEBHOOK_MASTER_SECRET",
    "none: no webhooks; locally made once, kept in `DATA_DIR`",
    `${MASTER_SECRET_MIN_BYTES} bytes or more. The secrets of endpoints are derived from ` +
    `it: a new value changes all of them`,
  ],
  [
    "BANK_DETAILS_KEYS",
    "none: no orders to banks",
    "`k1:` and 32 bytes in base64, and more keys after commas. The first one seals bank " +
    "details, and `deno task vault rotate` seals the older ones with it ([going " +
    "live](../going-live/bank.md#1-make-a-key-for-bank-details))",
  ],
  [
    "RELAY_TOKEN",
    "none: not woken; locally new at each start",
    "16 to 200 visible ASCII characters; the token with which the scheduler wakes the dispatcher",
  ],
  [
    "ALLOW_PRIVATE_WEBHOOKS",
    "`false`; locally `true`",
    "`true` allows `http` and private addresses for endpoints of test keys, which can then " +
    "read the [first bytes](monitoring.md#the-log-of-attempts) that such an address returns",
  ],
  [
    "RATE_LIMIT_PER_SECOND",
    `\`${DEFAULT_RATE_LIMIT}\`; locally \`0\``,
    "requests a second of each key, with bursts of twice as many; `0`: no limit",
  ],
  [
    "RATE_LIMIT_ACCOUNT_PER_SECOND",
    `${KEYS_AT_LIMIT} × \`RATE_LIMIT_PER_SECOND\``,
    "requests a second of all live keys of an account, and of the keys of all its " +
    "sandboxes, with bursts of twice as many; `0`: no limit",
  ],
  [
    "SANDBOX_STORAGE_GB",
    `\`${DEFAULT_STORAGE_GB}\`; locally \`0\``,
    "GiB (2^30 bytes) that the sandboxes of an account may store ([contract " +
    "§5](../contract.md#5-keys-environments-limits)); `0`: no limit",
  ],
  [
    "REQUEST_LOG",
    "`true`",
    "`false` writes no [log of requests](monitoring.md#the-log-of-requests) for merchants",
  ],
  ["API_KEY_PREFIX", "`sk`", "prefix of an account's first key, for `deno task keys`"],
  ["DB_POOL_SIZE", "`4`", "connections of one function instance; costly lists use one more"],
  ["DB_PREPARE", "`true`; at port 6543 `false`", "`false` behind a transaction pooler"],
];

/** Returns the page with both tables. */
export function renderConfigurationPage(committed: string): string {
  const head = ["Variable", "Default", "Meaning"];
  const table = (settings: readonly Setting[]) => renderTable(head, [...settings]).join("\n");
  const page = replaceBlock(committed, "command settings", table(OF_COMMANDS));
  return replaceBlock(page, "function settings", table(OF_FUNCTIONS));
}
