/**
 * The functions of a test as one of two cells behind HAProxy, with the configuration of
 * examples/cells. A cell is a process of Deno 2.1.4 with both functions, as deployed, over a
 * database of its own. The accounts of the test are in one cell, chosen at random; an account with
 * another label is in the other. A request without a key reaches either.
 */

import assert from "node:assert/strict";
import { DEFAULT_KEY_PREFIX } from "../../../shared/core/api_key.ts";
import type { Settings } from "../../../shared/functions/settings.ts";
import type { LogLine } from "../../../shared/http/log_line.ts";
import { until } from "../common/until.ts";
import { makeSandboxKey } from "../database/api_keys.ts";
import { cloneDatabase, connect, type TestDatabase, testServer } from "../database/database.ts";
import { startHaproxy } from "../proxy/cells_proxy.ts";
import { startFunctions } from "../supabase/function_process.ts";
import { keyedCall } from "./keyed_call.ts";
import { NeedsInternals } from "./needs_internals.ts";

const FUNCTIONS = ["api-v1-payments", "api-v1-sandbox"];
const MOUNT = "/functions/v1";
const HEALTH = "/api-v1-payments/health";
const OTHER_LABEL = "sk8q";
/** Paths whose URLs name the cell, as they begin with its PUBLIC_BASE_URL. */
const NAMES_CELL = /\/(challenges|providers)\//;
/** The ids of HAProxy are hexadecimal. Those of the service begin with the time, such as `1m8d`. */
const PROXY_REQUEST_ID = /^req_[0-9a-f]{26}$/;

/** Two cells with one address. */
interface Cells {
  /** Returns the URL before the path `/<function>/…`. The first call starts the cells. */
  urlOf(path: string): Promise<string>;
  /** Resolves when a cell has logged the line of this request. */
  logged(request_id: string): Promise<void>;
  /** Throws if a payment of the test has reached the other cell. */
  close(): Promise<void>;
}

/**
 * Makes the cells.
 * @param settings those of both cells, with the database of the test
 * @param on_line receives the log lines of the test's own requests, and of attempts
 */
export function openCells(settings: Settings, on_line: (line: LogLine) => void): Cells {
  const own_environment = environmentOf(settings);
  const open = new AsyncDisposableStack();
  let is_started = false;
  const takeLine = (line: LogLine) => {
    // The proxy sends health checks at any time.
    if (is_started && !line.route.endsWith("/health")) on_line(line);
  };
  const start = async () => {
    const database = open.use(await cloneDatabase());
    const other_environment = environmentOf({ ...settings, database_url: database.functions_url });
    const processes = await Promise.all(
      [own_environment, other_environment].map(async (environment) => {
        const process = await startFunctions(FUNCTIONS, environment, takeLine);
        open.defer(process.close);
        return process;
      }),
    );
    const [own, other] = processes.map(({ origin }) => new URL(origin).host);
    const [own_name, other_name] = Math.random() < 0.5 ? ["a", "b"] as const : ["b", "a"] as const;
    const { origin, close } = await startHaproxy(
      { a: own!, b: own!, [other_name]: other! },
      `${DEFAULT_KEY_PREFIX} ${own_name}\n${OTHER_LABEL} ${other_name}\n`,
    );
    open.defer(close);
    for (const name of [own_name, other_name]) {
      await until(`cell ${name} serves`, async () => {
        const { ok, body } = await fetch(`${origin}/cells/${name}${MOUNT}${HEALTH}`);
        await body?.cancel();
        return ok;
      });
    }
    const paid = await payInOther(origin + MOUNT, database);
    await until("the other cell logs its payment", () => processes[1]!.hasLogged(paid));
    is_started = true;
    open.defer(() => assertOnePayment(database));
    return { origin, processes, own_path: `/cells/${own_name}` };
  };
  let started: ReturnType<typeof start> | undefined;
  return {
    async urlOf(path) {
      const { origin, processes, own_path } = await (started ??= start());
      // The proxy does not serve these.
      if (path.includes("/internal/")) return processes[0]!.origin + MOUNT;
      return origin + (NAMES_CELL.test(path) ? own_path : "") + MOUNT;
    },
    async logged(request_id) {
      if (PROXY_REQUEST_ID.test(request_id)) return;
      const { processes } = await started!;
      await until(
        `a cell logs ${request_id}`,
        () => processes.some((process) => process.hasLogged(request_id)),
      );
    },
    async close() {
      await Promise.allSettled([started]);
      await open.disposeAsync();
    },
  };
}

/** Makes a payment in the other cell, and returns the id of the request. */
async function payInOther(base_url: string, database: TestDatabase): Promise<string> {
  const key = await makeSandboxKey(database.url, OTHER_LABEL);
  const body = { amount: 1000, currency: "EUR" };
  const path = "/api-v1-payments/v1/payments";
  const { status, text, headers } = await keyedCall(base_url, "POST", path, { key, body });
  assert.equal(status, 201, text);
  return headers.get("Request-Id")!;
}

async function assertOnePayment(database: TestDatabase): Promise<void> {
  await using sql = connect(database.url);
  const [row] = await sql`select count(*)::int as n from pay.payments`;
  assert.equal(row!.n, 1, "the payments in the other cell");
}

/**
 * Turns the settings of a test into environment variables. With a pooler, the database URL leads
 * through it.
 * @throws {NeedsInternals} for a setting without a variable
 */
function environmentOf(settings: Settings): Record<string, string> {
  const {
    database_url,
    base_url,
    checkout_url,
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
    ...(checkout_url && { CHECKOUT_URL: checkout_url }),
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
