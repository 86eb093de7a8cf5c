/**
 * The product under measurement: `scripts/start.ts` as a process of its own, as a user starts it,
 * with a data folder and a port of its own; everything is removed at the end. Its PostgreSQL keeps
 * the settings of production; `readSettings` asks the server for them.
 */

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Sql } from "postgres";
import type { Credentials } from "../scripts/credentials.ts";
import { credentialsPath } from "../scripts/credentials.ts";
import { postgresAccount, postgresHome } from "../scripts/postgres_account.ts";
import { SUPERUSER } from "../scripts/postgres_cluster.ts";

/** The project's folder. */
export const PROJECT_DIR = fileURLToPath(new URL("..", import.meta.url));
/** Unpacking, initdb and migrations on a slow machine. */
const START_DEADLINE_MS = 120_000;
const POLL_MS = 50;

/** A running product. */
export interface Product extends Credentials {
  readonly pid: number;
  readonly port: number;
  readonly postgres_pid: number;
  /** Its database as superuser, who sees every row. */
  readonly superuser_url: string;
}

/**
 * Starts the product and resolves when it answers.
 * @param atEnd takes the step that ends it and removes its data; throws unless it ended with code 0
 */
export async function startProduct(
  atEnd: (step: () => Promise<void>) => void,
): Promise<Product> {
  const data_dir = await Deno.makeTempDir({ prefix: "payments-bench-" });
  if (Deno.build.os !== "windows") await Deno.chmod(data_dir, 0o755);
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "scripts/start.ts"],
    cwd: PROJECT_DIR,
    env: { DATA_DIR: data_dir, PORT: "0", DATABASE_URL: "", LOG: "" },
    stdin: "null",
    stdout: "null",
    stderr: "inherit",
  }).spawn();
  let ended: Deno.CommandStatus | undefined;
  const status = child.status.then((status) => ended = status);
  const home = await postgresHome(data_dir, await postgresAccount());
  atEnd(async () => {
    if (ended === undefined) child.kill("SIGTERM");
    const { code } = await status;
    await Deno.remove(data_dir, { recursive: true });
    if (home !== data_dir) await Deno.remove(home, { recursive: true });
    if (code !== 0) throw new Error(`the product ended with code ${code}`);
  });
  const deadline = performance.now() + START_DEADLINE_MS;
  let credentials: Credentials | null = null;
  while ((credentials = await readCredentials(data_dir)) === null) {
    if (ended !== undefined) throw new Error(`the product did not start: code ${ended.code}`);
    if (performance.now() > deadline) throw new Error("the product did not start in time");
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  const postgres = await findPostgres(home);
  const port = Number(new URL(credentials.base_url).port);
  return { ...credentials, ...postgres, pid: child.pid, port };
}

/** The server's settings that decide what a commit costs, as the server tells them. */
export async function readDurability(sql: Sql): Promise<Record<string, string>> {
  const rows = await sql<{ name: string; setting: string }[]>`
    select name, setting from pg_settings
    where name in ('server_version', 'fsync', 'synchronous_commit', 'full_page_writes')
    order by name`;
  return Object.fromEntries(rows.map(({ name, setting }) => [name, setting]));
}

async function readCredentials(data_dir: string): Promise<Credentials | null> {
  const text = await Deno.readTextFile(credentialsPath(data_dir)).catch(() => null);
  return text === null ? null : JSON.parse(text);
}

/** Process and address of the embedded server, from the files that it keeps. */
async function findPostgres(home: string) {
  const lines = (await Deno.readTextFile(join(home, "postgres", "postmaster.pid"))).split("\n");
  const password = (await Deno.readTextFile(join(home, "postgres_password"))).trim();
  const port = Number(lines[3]);
  return {
    postgres_pid: Number(lines[0]),
    superuser_url: `postgres://${SUPERUSER}:${password}@127.0.0.1:${port}/${SUPERUSER}`,
  };
}
