/**
 * `deno task serve` serves both functions in production, without Supabase: over a PostgreSQL of your
 * own, behind a proxy with TLS, several instances on one database (docs/production.md). It makes no
 * keys and changes no schema.
 *
 * Exit codes: 0 after SIGTERM or Ctrl-C, 1 for an error that can pass, 2 for an invalid setting or
 * a database of another version.
 */

import { buildConsoleSite } from "../../../tools/site/console_site.ts";
import { siteHandler } from "../../../tools/site/static_site.ts";
import { expectHealthy, openFunctions } from "../local/functions.ts";
import { runUntilSignal } from "../local/launch.ts";
import { CONSOLE_PATH, openLocalServer } from "../local/local_server.ts";
import { say, Shutdown } from "../local/shutdown.ts";
import { startTicker } from "../local/ticker.ts";
import { openServeDatabase } from "./serve_database.ts";
import { readServeSettings } from "./serve_settings.ts";

/** The exit code after which a supervisor does not start the program again. */
const SETTINGS_CODE = 2;
/** Longer than the two checks, 0.5 s apart, after which the proxies of examples/production switch. */
const NOTICE_MS = 2_000;
/** Longer than the longest request: 8 s for a provider, then 5 s for a statement. */
const DRAIN_MS = 15_000;

async function serve(shutdown: Shutdown): Promise<void> {
  const settings = readServeSettings((name) => Deno.env.get(name));
  const { hostname, port, env, functions: { base_url, docs_url = null } } = settings;
  const sites = settings.has_console
    ? [siteHandler(CONSOLE_PATH, () => buildConsoleSite(new URL(base_url).pathname))]
    : [];
  const server = await openLocalServer(port, { hostname, sites, public_url: base_url, docs_url });
  shutdown.add(() => server.stop(0));
  const database = await openServeDatabase(settings.functions);
  shutdown.add(() => database.close());
  const functions = openFunctions(env, server, shutdown, {
    drain_ms: DRAIN_MS,
    notice_ms: NOTICE_MS,
  });
  await expectHealthy(functions);
  server.serve(functions);
  if (!database.has_scheduler) {
    const payments = functions["api-v1-payments"];
    shutdown.add(startTicker(payments, env("RELAY_TOKEN")!, database.checkBooks));
  }
  const jobs = database.has_scheduler ? "pg_cron runs the jobs" : "this instance runs the jobs";
  say(`Serving ${server.base_url} as ${base_url}; ${jobs}`);
}

if (import.meta.main) {
  const shutdown = new Shutdown();
  await runUntilSignal(shutdown, async () => {
    await serve(shutdown);
    return { exited: new Promise(() => {}) };
  }, SETTINGS_CODE);
}
