/**
 * The service under measurement: `apps/server/local/start.ts` of a checkout as a separate process,
 * started as a user starts it, with a temporary data folder. Its PostgreSQL keeps the durability of
 * production.
 */

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Sql } from "postgres";
import { type Credentials, credentialsPath } from "../../apps/server/data_dir/credentials.ts";
import { postgresAccount, postgresHome } from "../../apps/server/postgres/postgres_account.ts";
import { SUPERUSER } from "../../apps/server/postgres/postgres_cluster.ts";
import { readCpuSeconds } from "./cpu_time.ts";
import type { AtEnd } from "./program.ts";

/** The project's folder. */
export const PROJECT_DIR = fileURLToPath(new URL("../..", import.meta.url));
/** Time for unpacking, initdb and migrations on a slow machine. */
const START_DEADLINE_MS = 120_000;
const POLL_MS = 10;
/** Times of files are behind the clock by up to one tick of the system. */
const FILE_CLOCK_MS = 10;

/** A running product. */
export interface Product extends Credentials {
  readonly pid: number;
  readonly port: number;
  readonly postgres_pid: number;
  /** Its database as superuser, without row-level security. */
  readonly superuser_url: string;
  /** The folder of its Unix socket; empty: it has none. */
  readonly socket_folder: string;
}

/**
 * Starts the product and resolves when it responds.
 * @param project the folder of the checkout
 * @param instances its processes
 * @param atEnd registers the steps that end it and remove its data
 */
export async function startProduct(
  project: string,
  instances: number,
  atEnd: AtEnd,
): Promise<Product> {
  const folder = await makeDataDir(atEnd);
  const home = await postgresHome(folder, await postgresAccount());
  const began_at = Date.now();
  const child = new Deno.Command(Deno.execPath(), {
    args: [...await readStartCommand(project), "--instances", String(instances)],
    cwd: project,
    env: { DATA_DIR: folder, PORT: "0", DATABASE_URL: "", LOG: "" },
    stdin: "null",
    stdout: "null",
    stderr: "inherit",
  }).spawn();
  let ended: Deno.CommandStatus | undefined;
  const status = child.status.then((status) => ended = status);
  const stop = async () => {
    if (ended === undefined) child.kill("SIGTERM");
    const { code } = await status;
    if (code !== 0) throw new Error(`the product ended with code ${code}`);
  };
  atEnd(stop);
  const deadline = performance.now() + START_DEADLINE_MS;
  let credentials: Credentials | null = null;
  while ((credentials = await readCredentials(folder, began_at)) === null) {
    if (ended !== undefined) throw new Error(`the product did not start: code ${ended.code}`);
    if (performance.now() > deadline) throw new Error("the product did not start in time");
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  const health = await fetch(`${credentials.base_url}/api-v1-payments/health`);
  await health.body?.cancel();
  if (!health.ok) throw new Error(`health returns ${health.status}`);
  const postgres = await findPostgres(home);
  const port = Number(new URL(credentials.base_url).port);
  return { ...credentials, ...postgres, pid: child.pid, port };
}

/** The arguments of deno in `deno task start` of a checkout. */
async function readStartCommand(project: string): Promise<string[]> {
  const { tasks } = JSON.parse(await Deno.readTextFile(join(project, "deno.json")));
  return tasks.start.split("deno ")[1].split(" ");
}

async function makeDataDir(atEnd: AtEnd): Promise<string> {
  const folder = await Deno.makeTempDir({ prefix: "payments-bench-" });
  if (Deno.build.os !== "windows") await Deno.chmod(folder, 0o755);
  const home = await postgresHome(folder, await postgresAccount());
  atEnd(async () => {
    await Deno.remove(folder, { recursive: true });
    if (home !== folder) await Deno.remove(home, { recursive: true });
  });
  return folder;
}

/** Reads the CPU seconds of a product: those of its processes, and those of its PostgreSQL. */
export function readProductCpu({ pid, postgres_pid }: Product): Promise<number[]> {
  return readCpuSeconds([[pid], [postgres_pid]]);
}

/** The settings of PostgreSQL that decide the cost of a commit. */
export async function readDurability(sql: Sql): Promise<Record<string, string>> {
  const rows = await sql<{ name: string; setting: string }[]>`
    select name, setting from pg_settings
    where name in ('server_version', 'fsync', 'synchronous_commit', 'full_page_writes',
      'wal_compression')
    order by name`;
  return Object.fromEntries(rows.map(({ name, setting }) => [name, setting]));
}

/** The credentials that a start wrote after `since_at`; null if there are none yet. */
async function readCredentials(data_dir: string, since_at: number): Promise<Credentials | null> {
  const path = credentialsPath(data_dir);
  const written = await Deno.stat(path).catch(() => null);
  if (written === null || written.mtime!.getTime() < since_at - FILE_CLOCK_MS) return null;
  return JSON.parse(await Deno.readTextFile(path));
}

/** Process and address of the embedded server, read from its files. */
async function findPostgres(home: string) {
  const lines = (await Deno.readTextFile(join(home, "postgres", "postmaster.pid"))).split("\n");
  const password = (await Deno.readTextFile(join(home, "postgres_password"))).trim();
  const port = Number(lines[3]);
  return {
    postgres_pid: Number(lines[0]),
    socket_folder: lines[4]!,
    superuser_url: `postgres://${SUPERUSER}:${password}@127.0.0.1:${port}/${SUPERUSER}`,
  };
}
