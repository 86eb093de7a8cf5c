/**
 * What each program that starts the service does around it: it reads the settings, prints the
 * banner, and ends with an error that a user understands.
 */

import { relative } from "node:path";
import { credentialsPath } from "../data_dir/credentials.ts";
import { type Settings, SettingsError } from "../data_dir/settings.ts";
import { MigrationError } from "../migrations/migrate.ts";
import { renderBanner } from "./banner.ts";
import type { ReadyDatabase } from "./local_database.ts";
import type { RunningService } from "./service.ts";
import { say, type Shutdown, stopOnSignals } from "./shutdown.ts";

/** Runs a service as `runUntilEnd` does, until Ctrl-C or SIGTERM stops it. */
export async function runUntilSignal(...run: Parameters<typeof runUntilEnd>): Promise<void> {
  stopOnSignals(run[0]);
  await runUntilEnd(...run);
}

/**
 * Runs a service until its database ends for good. Prints an error and exits with 1 then. An error
 * that nothing has caught ends a start in the same way, but not a service that has started.
 * @param start starts the service, and adds to the shutdown what stops it. Returns nothing for a
 * database that does not end
 * @param settings_code the exit code for an invalid setting
 */
export async function runUntilEnd(
  shutdown: Shutdown,
  start: () => Promise<Pick<ReadyDatabase, "exited"> | void>,
  settings_code = 1,
): Promise<void> {
  let has_started = false;
  onUncaughtError((error) => {
    if (has_started || shutdown.signal.aborted) logUncaughtError(error);
    else fail(shutdown, error, 1);
  });
  try {
    const database = await start();
    has_started = true;
    const error = await database?.exited ?? null;
    if (error !== null) throw error;
  } catch (error) {
    if (shutdown.signal.aborted) return;
    await fail(shutdown, error, error instanceof SettingsError ? settings_code : 1);
  }
}

export function printBanner({ data_dir }: Settings, service: RunningService): void {
  const { credentials, log_path, database } = service;
  say(renderBanner({
    ...credentials,
    credentials_path: shortPath(credentialsPath(data_dir)),
    log_path: log_path && shortPath(log_path),
    database: database.shown_as,
  }, Deno.stdout.isTerminal() && !Deno.noColor));
}

/** Calls `handle` for each error that nothing has caught. Deno would end the process. */
function onUncaughtError(handle: (error: unknown) => void): void {
  globalThis.addEventListener("unhandledrejection", (event) => {
    event.preventDefault();
    handle(event.reason);
  });
  globalThis.addEventListener("error", (event) => {
    event.preventDefault();
    handle(event.error);
  });
}

let uncaught_errors = 0;

/** Logs an error that nothing has caught, and how many there have been. */
function logUncaughtError(error: unknown): void {
  const { name, stack, message } = error instanceof Error
    ? error
    : { name: typeof error, stack: "", message: "" };
  // The place is logged and the message is not, because it can contain data of a request.
  const place = stack?.replace(message, "").split("\n")
    .filter((line) => line.startsWith("    at ")).slice(0, 3);
  console.error(JSON.stringify({ fault: `uncaught ${name}`, place, count: ++uncaught_errors }));
}

/** Prints the error, stops everything that was started, and exits with the code. */
async function fail(shutdown: Shutdown, error: unknown, code: number): Promise<never> {
  const has_user_message = error instanceof SettingsError || error instanceof MigrationError ||
    (error instanceof Error && error.constructor === Error);
  const text = error instanceof Error && !has_user_message ? error.stack : (error as Error).message;
  try {
    Deno.stderr.writeSync(new TextEncoder().encode(`${text ?? error}\n`));
  } catch {
    // Its reader has gone.
  }
  await shutdown.run();
  Deno.exit(code);
}

function shortPath(path: string): string {
  const short = relative(Deno.cwd(), path);
  return short.startsWith("../..") ? path : short;
}
