/**
 * Servers that live as long as a program, and temporary databases on them. TEST_DATABASE_URL names
 * another server, whose user must be allowed to create databases.
 */

import { join } from "node:path";
import { makeMemoryFolder } from "../../apps/server/data_dir/memory_dir.ts";
import { openConnection } from "../../apps/server/postgres/connection.ts";
import { startPostgres } from "../../apps/server/postgres/embedded_postgres.ts";

/** Space in memory for the databases: several times what they need. */
const MEMORY_BYTES = 1024 ** 3;
/** Test files run in parallel, and each opens several connections. */
const MAX_CONNECTIONS = "300";
/**
 * A test file opens about 20 connections, and the 4096 rounds of hashing that are the default take a
 * third of the processor time of a connection. A random password needs no slow hash.
 */
const SCRAM_ITERATIONS = "1";

interface RunServer {
  superuser_url: string;
  programs_home: string;
  /** Stops the server if this run has started it. */
  close(): Promise<void>;
}

/**
 * Runs `work` with a server and a folder for files. Stops the server afterwards if it was started
 * here, and removes the folder.
 * @param bytes the space that the files need in memory
 */
export async function withServer<T>(
  prefix: string,
  bytes: number,
  work: (server: RunServer, folder: string) => Promise<T>,
): Promise<T> {
  const superuser_url = Deno.env.get("TEST_DATABASE_URL");
  const folder = await makeMemoryFolder(prefix, bytes);
  const server = superuser_url
    ? { superuser_url, programs_home: folder, close: () => Promise.resolve() }
    : await startServer(folder);
  try {
    return await work(server, folder);
  } finally {
    await server.close();
    await Deno.remove(folder, { recursive: true });
  }
}

/** Starts a server that keeps nothing after a crash, with its files in this folder. */
export async function startServer(folder: string): Promise<RunServer> {
  const server = await startPostgres({
    data_dir: join(folder, "data"),
    durable: false,
    settings: { max_connections: MAX_CONNECTIONS, scram_iterations: SCRAM_ITERATIONS },
  });
  const { superuser_url, programs_home } = server;
  const close = async () => {
    await server.stop();
    // For root it is elsewhere if the account of PostgreSQL cannot enter the folder.
    await Deno.remove(server.home, { recursive: true });
  };
  try {
    await using sql = openConnection(superuser_url);
    const password = decodeURIComponent(new URL(superuser_url).password);
    await sql.unsafe(`alter role current_user password '${password}'`);
  } catch (error) {
    await close();
    throw error;
  }
  return { superuser_url, programs_home, close };
}

export function databaseUrl(server_url: string, database: string): string {
  const url = new URL(server_url);
  url.pathname = `/${database}`;
  return url.href;
}

/** Runs `work` with the URL of a server for temporary databases. */
export async function withScratchServer<T>(work: (server_url: string) => Promise<T>): Promise<T> {
  return await withServer(
    "payments-schema-",
    MEMORY_BYTES,
    ({ superuser_url }) => work(superuser_url),
  );
}

/**
 * Creates a database, runs `work` with its URL, and drops the database.
 * @param server_url whose user may create databases
 * @param template the name of a database to copy, which must have no open connections
 */
export async function withDatabase<T>(
  server_url: string,
  work: (url: string) => Promise<T>,
  template = "template1",
): Promise<T> {
  const name = `pay_schema_${crypto.randomUUID().slice(0, 8)}`;
  await using sql = openConnection(server_url);
  try {
    await sql`create database ${sql(name)} template ${sql(template)}`;
    return await work(databaseUrl(server_url, name));
  } finally {
    await sql`drop database if exists ${sql(name)} with (force)`;
  }
}
