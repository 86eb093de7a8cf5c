/**
 * `deno task start` runs the whole service on this machine, from the sources. Ctrl-C or SIGTERM
 * stops everything that it started. The data stays, and the next start continues with it, also
 * after `kill -9`.
 */

import { fileURLToPath } from "node:url";
import { readSettings } from "../data_dir/settings.ts";
import { buildConsoleSite } from "../../../tools/site/console_site.ts";
import { buildDocsInThread } from "../../../tools/site/docs_thread.ts";
import { buildReferenceSite, fetchScalar } from "../../../tools/site/reference_site.ts";
import { printBanner, runUntilSignal } from "./launch.ts";
import { CONSOLE_LINK } from "./local_server.ts";
import { startService } from "./service.ts";
import { say, Shutdown } from "./shutdown.ts";

const PROJECT_DIR = fileURLToPath(new URL("../../../", import.meta.url));
const HELP = `Usage: deno task start

Runs the service on this machine. Ctrl-C stops it, and the data stays.

Environment variables:
  PORT          port on 127.0.0.1, by default 54321; 0 takes a free one
  DATA_DIR      folder of the data, by default .local
  DATABASE_URL  PostgreSQL server to use in place of the embedded one`;

if (import.meta.main) {
  readArguments(Deno.args);
  const shutdown = new Shutdown();
  await runUntilSignal(shutdown, async () => {
    const settings = readSettings((name) => Deno.env.get(name), PROJECT_DIR);
    const { data_dir } = settings;
    const service = await startService(settings, shutdown, {
      buildConsole: buildConsoleSite,
      buildDocs: () => buildDocsInThread(CONSOLE_LINK),
      buildReference: (base_url) => buildReferenceSite(data_dir, base_url),
      database: { durable: true, onProgress: say },
    });
    printBanner(settings, service);
    // A failure is ignored here: the first visit of the reference fetches again and shows the
    // error.
    fetchScalar(data_dir, shutdown.signal).catch(() => {});
    return service.database;
  });
}

/** Exits if there are arguments: with 0 for `--help`, and with 2 for any other one. */
function readArguments([first]: string[]): void {
  if (first === undefined) return;
  if (first === "--help" || first === "-h") {
    say(HELP);
    Deno.exit(0);
  }
  console.error(`"${first}" is no argument of deno task start: --help lists its variables`);
  Deno.exit(2);
}
