/**
 * `deno task start` runs the whole service on this machine. It opens the port, starts PostgreSQL
 * (or uses DATABASE_URL), applies the migrations, creates the demo account, serves both functions,
 * and prints their address. Ctrl-C or SIGTERM stops everything that it started. The data stays, and
 * the next start continues with it, also after `kill -9`.
 *
 * settings.ts reads the settings; embedded_postgres.ts restarts PostgreSQL if it dies.
 */

import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { renderBanner } from "./banner.ts";
import { credentialsPath, readDemoKeys, writeCredentials } from "../data_dir/credentials.ts";
import { buildConsoleSite } from "../sites/console_site.ts";
import { ensureDemoKeys } from "../operator/demo_account.ts";
import { takeFileLock } from "../data_dir/file_lock.ts";
import { type EdgeFunctions, type LocalServer, openLocalServer } from "./local_server.ts";
import { type ReadyDatabase, startDatabase, useDatabase } from "./local_database.ts";
import { MigrationError } from "../schema/migrate.ts";
import { publishOperatorUrl, removeOperatorUrl } from "../data_dir/operator_url.ts";
import { openServerLog, redirectConsole } from "./server_log.ts";
import { randomPassword, writePrivateFile } from "../data_dir/private_file.ts";
import { buildReferenceSite, fetchScalar } from "../sites/reference_site.ts";
import { readSettings, type Settings, SettingsError } from "../data_dir/settings.ts";
import { say, Shutdown, stopOnSignals } from "./shutdown.ts";
import { siteHandler } from "../sites/static_site.ts";
import { startTicker } from "./ticker.ts";

const PROJECT_DIR = fileURLToPath(new URL("../../", import.meta.url));
/** The path of the console on the port of the local server. */
const CONSOLE_PATH = "/console";
/** Time that requests in flight have after Ctrl-C. */
const DRAIN_MS = 5_000;
/** Time to wait for an earlier start that is stopping because its launcher was killed. */
const PREDECESSOR_MS = 2_000;

if (import.meta.main) await main();

async function main(): Promise<void> {
  const shutdown = new Shutdown();
  stopOnSignals(shutdown);
  globalThis.addEventListener("unhandledrejection", logUnhandledRejection);
  try {
    const settings = readSettings((name) => Deno.env.get(name), PROJECT_DIR);
    const { exited } = await start(settings, shutdown);
    const error = await exited;
    if (error !== null) throw error;
  } catch (error) {
    if (!shutdown.signal.aborted) await fail(shutdown, error);
  }
}

/** Starts everything and resolves when the service is ready. */
async function start(settings: Settings, shutdown: Shutdown): Promise<ReadyDatabase> {
  await openDataDir(settings.data_dir, shutdown);
  const { data_dir } = settings;
  const sites = [
    // The base URL is a path, so the page calls the origin that it was loaded from: 127.0.0.1,
    // localhost or another name.
    siteHandler(CONSOLE_PATH, () => buildConsoleSite(new URL(server.base_url).pathname)),
    siteHandler("/docs", () => buildReferenceSite(data_dir, server.base_url)),
  ];
  const server = await openLocalServer(settings.port, sites);
  shutdown.add(() => server.stop(DRAIN_MS));
  const log_path = settings.log_to_stdout ? null : join(settings.data_dir, "server.log");
  if (log_path !== null) {
    const log = openServerLog(log_path);
    redirectConsole(log);
    shutdown.add(() => log.close());
  }
  // The code of the functions is loaded while PostgreSQL starts.
  const loading = loadFunctions();
  loading.catch(() => {});
  const database = settings.database_url === null
    ? await startDatabase(settings.data_dir, shutdown)
    : await useDatabase(settings.database_url);
  if (settings.database_url === null) {
    shutdown.add(publishOperatorUrl(settings.data_dir, database.operator_url));
  }
  const { openDependencies, createPaymentsFunction, createSandboxFunction } = await loading;
  const environment = functionsEnvironment(settings.data_dir, server, database.functions_url);
  const dependencies = openDependencies(environment);
  shutdown.add(() => dependencies.close());
  shutdown.add(() => server.stop(DRAIN_MS));
  const functions: EdgeFunctions = {
    "api-v1-payments": createPaymentsFunction(dependencies),
    "api-v1-sandbox": createSandboxFunction(dependencies),
  };
  const keys = await ensureDemoKeys(
    database.operator_url,
    await readDemoKeys(settings.data_dir),
    (key) => isAccepted(functions, key),
  );
  await expectHealthy(functions);
  const credentials = { base_url: server.base_url, ...keys };
  // Both happen in one turn of the event loop: when GET /health answers 200, credentials.json
  // exists, and the reverse.
  server.serve(functions);
  shutdown.add(startTicker(functions["api-v1-payments"], environment("RELAY_TOKEN")!));
  writeCredentials(settings.data_dir, credentials);
  say(renderBanner({
    ...credentials,
    credentials_path: shortPath(credentialsPath(settings.data_dir)),
    log_path: log_path && shortPath(log_path),
    database: database.shown_as,
  }, Deno.stdout.isTerminal() && !Deno.noColor));
  // A failure is ignored here: the first visit of the reference fetches again and shows the error.
  fetchScalar(data_dir, shutdown.signal).catch(() => {});
  return database;
}

async function openDataDir(data_dir: string, shutdown: Shutdown): Promise<void> {
  try {
    await Deno.mkdir(data_dir, { recursive: true });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new SettingsError(`DATA_DIR "${data_dir}" cannot be created: ${reason}`);
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

async function loadFunctions() {
  const [dependencies, payments, sandbox] = await Promise.all([
    import("../../shared/http/dependencies.ts"),
    import("../../shared/http/payments_function.ts"),
    import("../../shared/http/sandbox_function.ts"),
  ]);
  return { ...dependencies, ...payments, ...sandbox };
}

/** The environment of the functions. Variables that the user has set override the defaults. */
function functionsEnvironment(data_dir: string, server: LocalServer, functions_url: string) {
  const defaults: Record<string, string> = {
    ALLOW_PRIVATE_WEBHOOKS: "true",
    RELAY_TOKEN: randomPassword(),
    WEBHOOK_MASTER_SECRET: webhookMasterSecret(data_dir),
    CONSOLE_ORIGINS: "http://localhost:*,http://127.0.0.1:*",
    CONSOLE_URL: new URL(CONSOLE_PATH, server.base_url).href,
    RATE_LIMIT_PER_SECOND: "0",
  };
  const fixed: Record<string, string> = {
    PAYMENTS_DB_URL: functions_url,
    PUBLIC_BASE_URL: server.base_url,
  };
  return (name: string) => fixed[name] ?? Deno.env.get(name) ?? defaults[name];
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

async function expectHealthy(functions: EdgeFunctions): Promise<void> {
  const request = new Request("http://127.0.0.1/api-v1-payments/health");
  const response = await functions["api-v1-payments"](request);
  const body = await response.text();
  if (response.status !== 200) {
    throw new Error(`The service is not healthy: GET /health answers ${response.status} ${body}`);
  }
}

/** Logs an unhandled rejection of a promise. Without this handler Deno would end the process. */
function logUnhandledRejection(event: PromiseRejectionEvent): void {
  event.preventDefault();
  const { name, stack } = event.reason instanceof Error ? event.reason : new Error();
  // The place is logged and the message is not, because it can contain data of a request.
  const place = stack?.split("\n").filter((line) => line.startsWith("    at ")).slice(0, 3);
  console.error(JSON.stringify({ fault: `unhandled ${name}`, place }));
}

/** Prints the error, stops everything that was started, and exits with 1. */
async function fail(shutdown: Shutdown, error: unknown): Promise<never> {
  const has_user_message = error instanceof SettingsError || error instanceof MigrationError ||
    (error instanceof Error && error.constructor === Error);
  const text = error instanceof Error && !has_user_message ? error.stack : (error as Error).message;
  Deno.stderr.writeSync(new TextEncoder().encode(`${text ?? error}\n`));
  await shutdown.run();
  Deno.exit(1);
}

function shortPath(path: string): string {
  const short = relative(Deno.cwd(), path);
  return short.startsWith("..") ? path : short;
}
