/**
 * `deno task start` runs the whole service on this machine, from the sources. Ctrl-C or SIGTERM
 * stops everything that it started. The data stays, and the next start continues with it, also
 * after `kill -9`.
 */

import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { START_COMMAND } from "../../../packages/sandbox/start_command.ts";
import { readInstances, readSettings, SettingsError } from "../data_dir/settings.ts";
import { buildCheckoutSite } from "../../../tools/site/checkout_site.ts";
import { buildConsoleSite } from "../../../tools/site/console_site.ts";
import { buildDocsInThread } from "../../../tools/site/docs_thread.ts";
import { buildReferenceSite, fetchScalar } from "../../../tools/site/reference_site.ts";
import { printBanner, runUntilSignal } from "./launch.ts";
import { CONSOLE_LINK } from "./local_server.ts";
import { DRAIN_MS, openLog, type SiteParts, sitesOf, startService } from "./service.ts";
import { say, Shutdown } from "./shutdown.ts";
import { WORKER, Workers } from "./workers.ts";

const PROJECT_DIR = fileURLToPath(new URL("../../../", import.meta.url));
const HELP = `Usage: deno task start [--instances N]

Runs the service on this machine. Ctrl-C stops it, and the data stays. On Linux N processes serve
the port, by default 1.

Environment variables:
  PORT          port on 127.0.0.1, by default 54321; 0 takes a free one
  DATA_DIR      folder of the data, by default .local
  DATABASE_URL  PostgreSQL server to use in place of the embedded one`;

if (import.meta.main) {
  const shutdown = new Shutdown();
  if (Deno.args[0] === WORKER) await work(shutdown);
  else {
    const workers = new Workers(START_COMMAND, readArguments(Deno.args));
    await runUntilSignal(shutdown, () => start(shutdown, workers));
  }
}

function readSites(data_dir: string): SiteParts {
  return {
    buildConsole: buildConsoleSite,
    buildCheckout: buildCheckoutSite,
    buildDocs: () => buildDocsInThread(CONSOLE_LINK),
    buildReference: (base_url) => buildReferenceSite(data_dir, base_url),
  };
}

async function start(shutdown: Shutdown, workers: Workers) {
  const settings = readSettings((name) => Deno.env.get(name), PROJECT_DIR);
  const { data_dir } = settings;
  const service = await startService(settings, shutdown, {
    ...readSites(data_dir),
    database: { durable: true, onProgress: say },
    workers,
  });
  printBanner(settings, service);
  // A failure is ignored here: the first visit of the reference fetches again and shows the
  // error.
  fetchScalar(data_dir, shutdown.signal).catch(() => {});
  return service.database;
}

async function work(shutdown: Shutdown): Promise<void> {
  const env = (name: string) => Deno.env.get(name);
  const settings = readSettings(env, PROJECT_DIR);
  const { port, data_dir } = settings;
  openLog(settings, shutdown);
  const { runWorker } = await import("./worker.ts");
  const sites = sitesOf(readSites(data_dir), () => env("PUBLIC_BASE_URL")!);
  await runWorker(shutdown, env, { port, sites, drain_ms: DRAIN_MS });
}

/** Returns the number of processes. Exits with 0 for `--help`, and with 2 for a wrong argument. */
function readArguments(args: string[]): number {
  try {
    const { values: { help, instances } } = parseArgs({
      args,
      options: {
        help: { type: "boolean", short: "h" },
        instances: { type: "string", default: "1" },
      },
    });
    if (!help) return readInstances("--instances", instances);
    say(HELP);
    Deno.exit(0);
  } catch (error) {
    if (!(error instanceof SettingsError)) {
      console.error(`"${args[0]}" is no argument of deno task start: --help lists its variables`);
    } else console.error(error.message);
    Deno.exit(2);
  }
}
