/**
 * `deno task serve` serves both functions in production, without Supabase: over a PostgreSQL of
 * your own, behind a proxy with TLS, several instances on one database (docs/production.md). It
 * makes no keys and changes no schema. An instance is one process for each processor, at one port.
 *
 * Exit codes: 0 after SIGTERM or Ctrl-C, 1 for an error that can pass, 2 for an invalid setting or
 * a database of another version.
 */

import { buildCheckoutSite } from "../../../tools/site/checkout_site.ts";
import { buildConsoleSite } from "../../../tools/site/console_site.ts";
import { siteHandler } from "../../../tools/site/static_site.ts";
import { expectHealthy, openFunctions } from "../local/functions.ts";
import { runUntilSignal } from "../local/launch.ts";
import { CHECKOUT_PATH, CONSOLE_PATH, openLocalServer } from "../local/local_server.ts";
import { say, Shutdown } from "../local/shutdown.ts";
import { startTicker } from "../local/ticker.ts";
import { runWorker } from "../local/worker.ts";
import { WORKER, Workers } from "../local/workers.ts";
import { SERVE_COMMAND } from "../../../packages/sandbox/start_command.ts";
import { openServeDatabase } from "./serve_database.ts";
import { readServeSettings, type ServeSettings } from "./serve_settings.ts";

/** The exit code after which a supervisor does not start the program again. */
const SETTINGS_CODE = 2;
/** Longer than two checks, 0.5 s apart, after which the proxies of examples/production switch. */
const NOTICE_MS = 2_000;
/** Longer than the longest request: 8 s for a provider, then 5 s for a statement. */
const DRAIN_MS = 15_000;
const STOP_TIMES = { drain_ms: DRAIN_MS, notice_ms: NOTICE_MS };

async function serve(shutdown: Shutdown): Promise<void> {
  const settings = readServeSettings((name) => Deno.env.get(name));
  const { instances, port, env } = settings;
  const workers = new Workers(SERVE_COMMAND, instances);
  const server = await openLocalServer(port, { ...serverOptions(settings), ...workers.sharing });
  shutdown.add(() => server.stop(0));
  const database = await openServeDatabase(settings.functions);
  shutdown.add(() => database.close());
  const pool = workers.poolSize(env("DB_POOL_SIZE"));
  const own_env = (name: string) => name === "DB_POOL_SIZE" ? pool : env(name);
  shutdown.add(() => workers.stop());
  const functions = openFunctions(own_env, server.stop, shutdown, STOP_TIMES);
  await expectHealthy(functions);
  server.serve(functions);
  workers.start({ PORT: String(server.port), ...pool !== undefined && { DB_POOL_SIZE: pool } });
  // The workers stop beside this process, and are awaited after it.
  shutdown.add(() => void workers.stop());
  if (!database.has_scheduler) {
    const payments = functions["api-v1-payments"];
    shutdown.add(startTicker(payments, env("RELAY_TOKEN")!, database.checkBooks));
  }
  const jobs = database.has_scheduler ? "pg_cron runs the jobs" : "this instance runs the jobs";
  const processes = instances === 1 ? "" : `; ${instances} processes`;
  say(`Serving ${server.base_url} as ${settings.functions.base_url}; ${jobs}${processes}`);
}

function serverOptions({ hostname, has_console, has_checkout, functions }: ServeSettings) {
  const { base_url, docs_url = null } = functions;
  const { pathname } = new URL(base_url);
  const sites = [
    ...has_console ? [siteHandler(CONSOLE_PATH, () => buildConsoleSite(pathname))] : [],
    ...has_checkout ? [siteHandler(CHECKOUT_PATH, () => buildCheckoutSite(pathname))] : [],
  ];
  return { hostname, sites, public_url: base_url, docs_url };
}

async function work(shutdown: Shutdown): Promise<void> {
  const settings = readServeSettings((name) => Deno.env.get(name));
  const { env, port } = settings;
  await runWorker(shutdown, env, { ...serverOptions(settings), ...STOP_TIMES, port });
}

if (import.meta.main) {
  const shutdown = new Shutdown();
  if (Deno.args[0] === WORKER) await work(shutdown);
  else await runUntilSignal(shutdown, () => serve(shutdown), SETTINGS_CODE);
}
