/**
 * The service on this machine: opens the port, starts PostgreSQL (or uses DATABASE_URL), applies
 * the migrations, creates the demo account, and serves both functions. Programs that start it
 * differ in the parts that they pass: start.ts and package_start.ts.
 *
 * settings.ts reads the settings; embedded_postgres.ts restarts PostgreSQL if it dies.
 */

import { join } from "node:path";
import { type Credentials, readCredentials, writeCredentials } from "../data_dir/credentials.ts";
import { takeFileLock } from "../data_dir/file_lock.ts";
import { publishOperatorUrl, removeOperatorUrl } from "../data_dir/operator_url.ts";
import { randomPassword, writePrivateFile } from "../data_dir/private_file.ts";
import { reasonOf, type Settings, SettingsError } from "../data_dir/settings.ts";
import { ensureDemoKeys } from "../../operator/demo_account.ts";
import { type SiteHandler, siteHandler, type StaticSite } from "../../../tools/site/static_site.ts";
import {
  type DatabaseOptions,
  type ReadyDatabase,
  startDatabase,
  useDatabase,
} from "./local_database.ts";
import {
  CHECKOUT_PATH,
  CONSOLE_PATH,
  DOCS_PATH,
  type EdgeFunctions,
  indexPage,
  type LocalServer,
  openLocalServer,
  REFERENCE_PATH,
} from "./local_server.ts";
import { openServerLog, redirectConsole } from "./server_log.ts";
import type { Shutdown } from "./shutdown.ts";
import { startTicker } from "./ticker.ts";
import type { Workers } from "./workers.ts";

/** The sites that differ between a start from the sources and one from the npm package. */
export interface SiteParts {
  /** Builds the console. `base_path` is the path of the API on the origin that serves the page. */
  buildConsole(base_path: string): Promise<StaticSite>;
  /** Builds the page for payers, as `buildConsole` builds the console. */
  buildCheckout(base_path: string): Promise<StaticSite>;
  /** Builds the pages of the documentation. */
  buildDocs(): Promise<StaticSite>;
  /** Builds the reference. Its code samples call `base_url`. */
  buildReference(base_url: string): Promise<StaticSite>;
}

/** The parts that differ between the programs. */
export interface ServiceParts extends SiteParts {
  /** Options of the embedded server. */
  database: DatabaseOptions;
  /** Further processes at the port; by default none. */
  workers?: Workers;
}

export interface RunningService {
  database: ReadyDatabase;
  credentials: Credentials;
  /** Path of the log file, or null if log lines go to standard output. */
  log_path: string | null;
}

/** Time that requests in flight have after Ctrl-C. */
export const DRAIN_MS = 5_000;
/** Time to wait for an earlier start that is stopping because its launcher was killed. */
const PREDECESSOR_MS = 2_000;

/** Starts everything and resolves when the service is ready. */
export async function startService(
  settings: Settings,
  shutdown: Shutdown,
  parts: ServiceParts,
): Promise<RunningService> {
  await openDataDir(settings.data_dir, shutdown);
  const { workers } = parts;
  const sites = sitesOf(parts, () => server.base_url);
  const server = await openLocalServer(settings.port, { sites, ...workers?.sharing });
  shutdown.add(() => server.stop(DRAIN_MS));
  const log_path = openLog(settings, shutdown);
  // The code of the functions is loaded while PostgreSQL starts.
  const loading = import("./functions.ts");
  loading.catch(() => {});
  const database = settings.database_url === null
    ? await startDatabase(settings.data_dir, shutdown, parts.database)
    : await useDatabase(settings.database_url);
  if (settings.database_url === null) {
    shutdown.add(publishOperatorUrl(settings.data_dir, database.operator_url));
  }
  const { openFunctions, expectHealthy } = await loading;
  const variables = functionsEnvironment(settings.data_dir, server, database.functions_url);
  const pool = workers?.poolSize(Deno.env.get("DB_POOL_SIZE"));
  if (pool !== undefined) variables["DB_POOL_SIZE"] = pool;
  const environment = (name: string) => variables[name] ?? Deno.env.get(name);
  shutdown.add(() => workers?.stop());
  const functions = openFunctions(environment, server.stop, shutdown, { drain_ms: DRAIN_MS });
  const keys = await ensureDemoKeys(
    database.operator_url,
    await readCredentials(settings.data_dir),
    (key) => isAccepted(functions, key),
  );
  await expectHealthy(functions);
  const credentials = { base_url: server.base_url, ...keys };
  // Both happen in one turn of the event loop: when GET /health returns 200, credentials.json
  // exists, and the reverse.
  server.serve(functions);
  shutdown.add(startTicker(functions["api-v1-payments"], environment("RELAY_TOKEN")!));
  writeCredentials(settings.data_dir, credentials);
  workers?.start({ ...variables, PORT: String(server.port) });
  // The workers stop beside this process, and are awaited after it, before the database.
  shutdown.add(() => void workers?.stop());
  return { database, credentials, log_path };
}

/** The sites of a start. */
export function sitesOf(parts: SiteParts, baseUrl: () => string): SiteHandler[] {
  return [
    indexPage,
    // The base URL is a path, so the page calls the origin that it was loaded from: 127.0.0.1,
    // localhost or another name.
    siteHandler(CONSOLE_PATH, () => parts.buildConsole(new URL(baseUrl()).pathname)),
    siteHandler(CHECKOUT_PATH, () => parts.buildCheckout(new URL(baseUrl()).pathname)),
    siteHandler(REFERENCE_PATH, () => parts.buildReference(baseUrl())),
    siteHandler(DOCS_PATH, parts.buildDocs),
  ];
}

/** Redirects log lines to the log file. Returns its path, or null if they go to the output. */
export function openLog({ log_to_stdout, data_dir }: Settings, shutdown: Shutdown): string | null {
  if (log_to_stdout) return null;
  const path = join(data_dir, "server.log");
  const log = openServerLog(path);
  redirectConsole(log);
  shutdown.add(() => log.close());
  return path;
}

async function openDataDir(data_dir: string, shutdown: Shutdown): Promise<void> {
  try {
    await Deno.mkdir(data_dir, { recursive: true });
  } catch (error) {
    throw new SettingsError(`DATA_DIR "${data_dir}" cannot be created: ${reasonOf(error)}`);
  }
  const lock_path = join(data_dir, "start.lock");
  let lock = takeFileLock(lock_path);
  for (const give_up_at = Date.now() + PREDECESSOR_MS; "held_by" in lock;) {
    if (Date.now() > give_up_at) break;
    await new Promise((resolve) => setTimeout(resolve, 50));
    lock = takeFileLock(lock_path);
  }
  if ("held_by" in lock) {
    throw new SettingsError(
      `DATA_DIR "${data_dir}" is in use by another start (process ${lock.held_by}): stop it, or ` +
        "set DATA_DIR and PORT for a second one",
    );
  }
  shutdown.add(() => lock.release());
  // A killed start has left the URL of a server that no longer exists.
  removeOperatorUrl(data_dir);
}

/** The variables of the functions. Those that the user has set override the defaults. */
function functionsEnvironment(data_dir: string, server: LocalServer, functions_url: string) {
  const defaults: Record<string, string> = {
    ALLOW_PRIVATE_WEBHOOKS: "true",
    RELAY_TOKEN: randomPassword(),
    WEBHOOK_MASTER_SECRET: webhookMasterSecret(data_dir),
    CONSOLE_ORIGINS: "http://localhost:*,http://127.0.0.1:*",
    CHECKOUT_URL: new URL(CHECKOUT_PATH, server.base_url).href,
    DOCS_URL: new URL(DOCS_PATH, server.base_url).href,
    RATE_LIMIT_PER_SECOND: "0",
    SANDBOX_STORAGE_GB: "0",
  };
  const fixed: Record<string, string> = {
    PAYMENTS_DB_URL: functions_url,
    PUBLIC_BASE_URL: server.base_url,
  };
  const set = Object.entries(defaults).map(([name, value]) => [name, Deno.env.get(name) ?? value]);
  return { ...Object.fromEntries(set), ...fixed } as Record<string, string>;
}

/**
 * Reads the master secret of the webhook endpoints, or creates it on the first start. It must stay
 * the same, because a new one changes the secret of every endpoint.
 */
function webhookMasterSecret(data_dir: string): string {
  const path = join(data_dir, "webhook_master_secret");
  try {
    return Deno.readTextFileSync(path);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
  const secret = randomPassword();
  writePrivateFile(path, secret);
  return secret;
}

/** Whether the service accepts the key. Calls the function directly, not over the network. */
async function isAccepted(functions: EdgeFunctions, key: string): Promise<boolean> {
  const request = new Request("http://127.0.0.1/api-v1-payments/v1/payments?limit=1", {
    headers: { Authorization: `Bearer ${key}` },
  });
  const response = await functions["api-v1-payments"](request);
  await response.body?.cancel();
  return response.status !== 401;
}
