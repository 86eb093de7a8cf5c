/**
 * Starts the service of the npm package. The package has its sites as files, and the package
 * manager has installed PostgreSQL, so nothing is fetched.
 *
 * With `--temporary` the service has a data folder of its own and lives until its standard input
 * closes. It prints one line of JSON when it is ready: `base_url`, `test_key`, `live_key`.
 *
 * With `--name=PORT=--port` messages call the setting by the name with which the user has given it.
 */

import { parseArgs } from "node:util";
import { fileURLToPath } from "node:url";
import { readSettings, SettingsError } from "../data_dir/settings.ts";
import { readReferenceFolder, readSiteFolder } from "../../../tools/site/site_folder.ts";
import { printBanner, runUntilEnd, runUntilSignal } from "./launch.ts";
import { type ServiceParts, startService } from "./service.ts";
import { endWithInput, say, Shutdown } from "./shutdown.ts";
import { makeTemporaryData, TEMPORARY_SETTINGS } from "./temporary_data.ts";

/** The folder of the package. The build writes this program to `dist/service/local/start.js`. */
const PACKAGE_DIR = new URL("../../../", import.meta.url);

const SITES: Omit<ServiceParts, "database"> = {
  buildConsole: () => readSiteFolder(siteFolder("console")),
  buildCheckout: () => readSiteFolder(siteFolder("checkout")),
  buildDocs: () => readSiteFolder(siteFolder("docs")),
  buildReference: (base_url) => readReferenceFolder(siteFolder("reference"), base_url),
};
/** Any free port, unless the user wants a certain one. */
const PORT = Deno.env.get("PORT") ?? "0";

if (import.meta.main) await main(Deno.args);

async function main(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      "postgres-package": { type: "string" },
      temporary: { type: "boolean" },
      name: { type: "string", multiple: true, default: [] },
    },
  });
  const package_dir = values["postgres-package"];
  const names = new Map(values.name.map((pair) => pair.split("=", 2) as [string, string]));
  if (values.temporary) await runTemporarily(package_dir, names);
  else await run(package_dir, names);
}

/** The names that messages have in place of those of variables. */
type Names = ReadonlyMap<string, string>;

/** Does the work. An error of a setting has the name with which the user has given it. */
async function withNames<T>(names: Names, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error;
    throw new SettingsError(
      error.message.replace(/\b[A-Z_]+\b/g, (name) => names.get(name) ?? name),
    );
  }
}

async function run(package_dir: string | undefined, names: Names): Promise<void> {
  const shutdown = new Shutdown();
  const start = async () => {
    const settings = readSettings((name) => Deno.env.get(name), Deno.cwd());
    const database = { durable: true, package_dir, onProgress: say };
    const service = await startService(settings, shutdown, { ...SITES, database });
    printBanner(settings, service);
    return service.database;
  };
  await runUntilSignal(shutdown, () => withNames(names, start));
}

async function runTemporarily(package_dir: string | undefined, names: Names): Promise<void> {
  const shutdown = new Shutdown();
  const end = async () => {
    // On other systems the reaper ends everything as soon as this process has ended.
    if (Deno.build.os === "windows") await shutdown.run();
    Deno.exit(0);
  };
  endWithInput(end, Deno.build.os === "windows" ? ["SIGINT"] : ["SIGINT", "SIGTERM"]);
  const start = async () => {
    const onProgress = (line: string) => console.error(line);
    const data = await makeTemporaryData({ package_dir, onProgress });
    shutdown.add(() => data.remove());
    const { port } = readSettings((name) => name === "PORT" ? PORT : undefined, data.path);
    const settings = { port, data_dir: data.path, database_url: null, log_to_stdout: false };
    const service = await startService(settings, shutdown, {
      ...SITES,
      database: { durable: false, package_dir, is_migrated: true, settings: TEMPORARY_SETTINGS },
    });
    say(JSON.stringify(service.credentials));
    return service.database;
  };
  await runUntilEnd(shutdown, () => withNames(names, start));
}

function siteFolder(name: string): string {
  return fileURLToPath(new URL(`sites/${name}`, PACKAGE_DIR));
}
