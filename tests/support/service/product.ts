/**
 * Runs the two functions over a database: by default in the process of the test. With
 * `TEST_FUNCTIONS=processes` each function is a process of Deno 2.1.4, as deployed; with `pooled`
 * the processes reach the database through a transaction pooler.
 *
 * In another process, tests cannot reach the internals of the functions, such as the clock and the
 * SQL statements. A test or step that needs them ends with `NeedsInternals`. The run counts these
 * tests and names them at its end.
 */

import {
  createDependencies,
  type OpenDependencies,
} from "../../../shared/functions/dependencies.ts";
import type { Settings } from "../../../shared/functions/settings.ts";
import { createPaymentsFunction } from "../../../shared/functions/payments_function.ts";
import type { LogLine } from "../../../shared/http/log_line.ts";
import { createSandboxFunction } from "../../../shared/functions/sandbox_function.ts";
import { testServer } from "../database/database.ts";
import { type FunctionProcess, startFunction } from "../supabase/function_process.ts";
import { NeedsInternals, recordUntested } from "./needs_internals.ts";

/** The running functions. */
interface Product {
  /** Responds to a request to `/<function>/…`; its host does not matter. */
  fetch(request: Request): Promise<Response>;
  /** Throws `NeedsInternals` if the functions are processes. */
  readonly deps: OpenDependencies;
  logs: LogLine[];
  close(): Promise<void>;
}

/** The way in which this run starts the functions; undefined: in the process of the test. */
const WAY = Deno.env.get("TEST_FUNCTIONS");
/** Whether the functions are processes of their own. */
export const IS_REMOTE = WAY === "processes" || WAY === "pooled";
if (WAY && !IS_REMOTE) throw new Error(`TEST_FUNCTIONS "${WAY}" is neither processes nor pooled`);
if (IS_REMOTE) recordUntested();

/** Longer than the default, because a database on a busy machine can be slow. */
const AWAY_AFTER_MS = 15_000;

const NAMES = ["api-v1-payments", "api-v1-sandbox"] as const;
type Name = typeof NAMES[number];

/** Opens the functions. `inside` are settings that apply only in the process of the test. */
export function openProduct(settings: Settings, inside: Partial<Settings> = {}): Product {
  return IS_REMOTE ? openProcesses(settings) : openHere({ ...settings, ...inside });
}

function openHere(settings: Settings): Product {
  const logs: LogLine[] = [];
  const deps = createDependencies({
    log: (line) => logs.push(line),
    unavailable_after_ms: AWAY_AFTER_MS,
    ...settings,
  });
  const functions = {
    "api-v1-payments": createPaymentsFunction(deps),
    "api-v1-sandbox": createSandboxFunction(deps),
  };
  return {
    fetch: async (request) => await functions[functionOf(request)](request),
    deps,
    logs,
    close: () => deps.close(),
  };
}

function openProcesses(settings: Settings): Product {
  const environment = environmentOf(settings);
  const logs: LogLine[] = [];
  // A process starts at the first call of its function, because most tests call only one.
  const processes = new Map<Name, Promise<FunctionProcess>>();
  const processOf = (name: Name) => {
    const process = processes.get(name) ??
      startFunction(name, environment, (line) => logs.push(line));
    processes.set(name, process);
    return process;
  };
  return {
    async fetch(request) {
      const process = await processOf(functionOf(request));
      const { pathname, search } = new URL(request.url);
      if (request.headers.has("Content-Length")) throw new NeedsInternals("a false Content-Length");
      const response = await send(process.origin + pathname + search, request);
      const id = response.headers.get("Request-Id");
      // Internal routes and health checks are not logged. A response without an id is not theirs.
      if (id && !/\/internal\/|\/health$/.test(pathname)) await process.logged(id);
      return response;
    },
    get deps(): OpenDependencies {
      throw new NeedsInternals("the parts of the service");
    },
    logs,
    async close() {
      for (const process of processes.values()) await (await process).close();
    },
  };
}

const TRANSPORT_HEADERS: ReadonlySet<string> = new Set([
  "date",
  "content-encoding",
  "transfer-encoding",
]);
/** Opens a connection for each request: the server closes connections of refused bodies. */
const client = IS_REMOTE ? Deno.createHttpClient({ poolMaxIdlePerHost: 0 }) : undefined;

async function send(url: string, { method, headers, body: stream }: Request): Promise<Response> {
  const body = stream && await new Response(stream).bytes();
  try {
    const options = {
      method,
      headers,
      body,
      redirect: "manual",
      ...(client && { client }),
    } as const;
    const response = await fetch(url, options);
    // Removes headers of the transport: the date, the encoding that `fetch` has removed, and the
    // length of the encoded body.
    const is_coded = response.headers.has("content-encoding");
    const kept = [...response.headers].filter(([name]) =>
      !TRANSPORT_HEADERS.has(name) && !(is_coded && name === "content-length")
    );
    return new Response(response.body, { status: response.status, headers: kept });
  } catch (error) {
    if (!String(error).includes("header value")) throw error;
    throw new NeedsInternals("a header that no client sends");
  }
}

function functionOf(request: Request): Name {
  return new URL(request.url).pathname.split("/")[1] as Name;
}

/** The environment variables of settings. A setting without a variable throws `NeedsInternals`. */
function environmentOf(settings: Settings): Record<string, string> {
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
    REQUEST_LOG: "false",
    ...(max_connections && { DB_POOL_SIZE: String(max_connections) }),
    ...(is_prepared !== undefined && { DB_PREPARE: String(is_prepared) }),
  };
}
