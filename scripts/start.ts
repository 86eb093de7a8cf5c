/**
 * `deno task start`: the whole service on this machine. Takes the port, starts PostgreSQL (or
 * uses DATABASE_URL), migrates, makes the demo account, serves both functions, prints where they
 * are. Ctrl-C or SIGTERM ends everything that it started; the data stays and the next start, also
 * after `kill -9`, goes on with it.
 *
 * Settings are in settings.ts, how PostgreSQL is kept alive in embedded_postgres.ts.
 */

import postgres from "postgres";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { renderBanner } from "./banner.ts";
import { credentialsPath, readDemoKeys, writeCredentials } from "./credentials.ts";
import { ensureDemoKeys } from "./demo_account.ts";
import { startPostgres } from "./embedded_postgres.ts";
import { takeFileLock } from "./file_lock.ts";
import { grantFunctionsRole } from "./functions_role.ts";
import { watchLauncher } from "./launcher_watch.ts";
import { type EdgeFunctions, type LocalServer, openLocalServer } from "./local_server.ts";
import { migrate, MigrationError } from "./migrate.ts";
import { randomPassword } from "./private_file.ts";
import { openServerLog, redirectConsole } from "./server_log.ts";
import { readSettings, type Settings, SettingsError } from "./settings.ts";

const PROJECT_DIR = fileURLToPath(new URL("..", import.meta.url));
/** Requests in flight may take this long after Ctrl-C. */
const DRAIN_MS = 5_000;
/** Under `deno task` one Ctrl-C may arrive twice; only a later one means "now". */
const SAME_SIGNAL_MS = 500;
/** A start that is on its way out, because its launcher was killed, is waited for this long. */
const PREDECESSOR_MS = 2_000;
const FUNCTIONS_ROLE = "pay_functions";

/** What has been started, to be ended in reverse order; every step is tried. */
class Shutdown {
  readonly #steps: (() => unknown)[] = [];
  readonly #abort = new AbortController();

  /** Aborted when the end begins: for what is still starting. */
  readonly signal: AbortSignal = this.#abort.signal;

  add(step: () => unknown): void {
    this.#steps.push(step);
  }

  async run(): Promise<void> {
    this.#abort.abort();
    for (let step = this.#steps.pop(); step !== undefined; step = this.#steps.pop()) {
      try {
        await step();
      } catch (error) {
        say(`While stopping: ${error instanceof Error ? error.message : error}`);
      }
    }
  }
}

if (import.meta.main) await main();

async function main(): Promise<void> {
  const shutdown = new Shutdown();
  stopOnSignals(shutdown);
  try {
    const settings = readSettings((name) => Deno.env.get(name), PROJECT_DIR);
    const { exited } = await start(settings, shutdown);
    const error = await exited;
    if (error !== null) throw error;
  } catch (error) {
    if (!shutdown.signal.aborted) await fail(shutdown, error);
  }
}

/** Starts everything and resolves when the service answers. */
async function start(settings: Settings, shutdown: Shutdown): Promise<ReadyDatabase> {
  await openDataDir(settings.data_dir, shutdown);
  const server = await openLocalServer(settings.port);
  shutdown.add(() => server.stop(DRAIN_MS));
  const log_path = settings.log_to_stdout ? null : join(settings.data_dir, "server.log");
  if (log_path !== null) {
    const log = openServerLog(log_path);
    redirectConsole(log);
    shutdown.add(() => log.close());
  }
  // The functions' code loads while the server starts.
  const loading = loadFunctions();
  loading.catch(() => {});
  const database = settings.database_url === null
    ? await startDatabase(settings, shutdown)
    : await useDatabase(settings.database_url);
  const { openDependencies, createPaymentsFunction, createSandboxFunction } = await loading;
  const dependencies = openDependencies(functionsEnvironment(server, database.functions_url));
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
  // In one turn of the event loop: whoever sees health 200 finds the file, and the other way round.
  server.serve(functions);
  writeCredentials(settings.data_dir, credentials);
  say(renderBanner({
    ...credentials,
    credentials_path: shortPath(credentialsPath(settings.data_dir)),
    log_path: log_path && shortPath(log_path),
    database: database.shown_as,
  }, Deno.stdout.isTerminal() && !Deno.noColor));
  return database;
}

/** A database that is migrated and ready for the functions. */
interface ReadyDatabase {
  /** A user who may execute the operator's functions. */
  operator_url: string;
  functions_url: string;
  /** For the banner; null for the embedded server. */
  shown_as: string | null;
  /** Resolves when the database is gone for good; to null when we ended it. */
  exited: Promise<Error | null>;
}

async function startDatabase(settings: Settings, shutdown: Shutdown): Promise<ReadyDatabase> {
  const starting = startPostgres({
    data_dir: settings.data_dir,
    durable: true,
    onProgress: say,
    signal: shutdown.signal,
  });
  shutdown.add(async () => (await starting.catch(() => null))?.stop());
  const server = await starting;
  await migrate(server.superuser_url);
  // A new password with each start: no file has to keep it.
  const role = { name: FUNCTIONS_ROLE, password: randomPassword() };
  const sql = postgres(server.superuser_url, { max: 1, onnotice: () => {} });
  try {
    await grantFunctionsRole(sql, role);
  } finally {
    await sql.end();
  }
  return {
    operator_url: server.superuser_url,
    functions_url: server.urlFor("postgres", role),
    shown_as: null,
    exited: server.exited,
  };
}

/** The user's own server: the functions log in as its user, as they do when deployed. */
async function useDatabase(url: string): Promise<ReadyDatabase> {
  const { host, pathname } = new URL(url);
  const sql = postgres(url, { max: 1, connect_timeout: 5, onnotice: () => {} });
  try {
    await sql`select 1`;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new SettingsError(`DATABASE_URL names a server that does not let us in: ${reason}`);
  } finally {
    await sql.end();
  }
  await migrate(url);
  return {
    operator_url: url,
    functions_url: url,
    shown_as: host + pathname,
    exited: new Promise(() => {}),
  };
}

async function openDataDir(data_dir: string, shutdown: Shutdown): Promise<void> {
  try {
    await Deno.mkdir(data_dir, { recursive: true });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new SettingsError(`DATA_DIR "${data_dir}" cannot be made: ${reason}`);
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
}

async function loadFunctions() {
  const [dependencies, payments, sandbox] = await Promise.all([
    import("../shared/http/dependencies.ts"),
    import("../shared/http/payments_function.ts"),
    import("../shared/http/sandbox_function.ts"),
  ]);
  return { ...dependencies, ...payments, ...sandbox };
}

/** The functions' environment; what the caller set for them wins over our defaults. */
function functionsEnvironment(server: LocalServer, functions_url: string) {
  const defaults: Record<string, string> = {
    CONSOLE_ORIGINS: "http://localhost:*,http://127.0.0.1:*",
    RATE_LIMIT_PER_SECOND: "0",
  };
  const fixed: Record<string, string> = {
    PAYMENTS_DB_URL: functions_url,
    PUBLIC_BASE_URL: server.base_url,
  };
  return (name: string) => fixed[name] ?? Deno.env.get(name) ?? defaults[name];
}

/** Whether the service takes the key, asked without a network. */
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
    throw new Error(`The service does not get well: health answers ${response.status} ${body}`);
  }
}

/** The first signal ends everything in order with code 0, a later one at once. */
function stopOnSignals(shutdown: Shutdown): void {
  let stopping_since: number | null = null;
  const onSignal = () => {
    if (stopping_since === null) {
      stopping_since = Date.now();
      say("\nStopping");
      shutdown.run().then(() => Deno.exit(0));
    } else if (Date.now() - stopping_since > SAME_SIGNAL_MS) {
      // PostgreSQL ends by itself or is ended by the next start, which recovers its data.
      Deno.exit(130);
    }
  };
  const signals: Deno.Signal[] = Deno.build.os === "windows"
    ? ["SIGINT", "SIGBREAK"]
    : ["SIGINT", "SIGTERM", "SIGHUP"];
  for (const signal of signals) Deno.addSignalListener(signal, onSignal);
  watchLauncher(onSignal);
}

/** Says what went wrong, ends what was started, exits with 1. */
async function fail(shutdown: Shutdown, error: unknown): Promise<never> {
  const is_for_people = error instanceof SettingsError || error instanceof MigrationError ||
    (error instanceof Error && error.constructor === Error);
  const text = error instanceof Error && !is_for_people ? error.stack : (error as Error).message;
  Deno.stderr.writeSync(new TextEncoder().encode(`${text ?? error}\n`));
  await shutdown.run();
  Deno.exit(1);
}

/** Prints past `console`, which may lead to the log file. */
function say(line: string): void {
  try {
    Deno.stdout.writeSync(new TextEncoder().encode(line.endsWith("\n") ? line : `${line}\n`));
  } catch {
    // Nobody reads our output any more; that is no reason to stop serving.
  }
}

function shortPath(path: string): string {
  const short = relative(Deno.cwd(), path);
  return short.startsWith("..") ? path : short;
}
