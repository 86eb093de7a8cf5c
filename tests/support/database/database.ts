/**
 * Makes a separate database for each test file: a copy of the migrated template that
 * `deno task test` prepared, or the server that files without it share. A copy takes less than
 * 0.1 s. No file sees the rows of another.
 */

import postgres from "postgres";
import { NO_SERVER, sharedServer } from "./shared_server.ts";

/** The content of the variable TEST_SERVER, which `deno task test` sets for the test files. */
export interface TestServer {
  /** A folder of the run, which other accounts can enter. */
  folder: string;
  superuser_url: string;
  /** The database to copy. */
  template: string;
  /** The role with which the functions connect. */
  functions_role: { name: string; password: string };
  /** Prefix of the name of every copy. */
  clone_prefix: string;
  /** A folder in which tests install the programs of PostgreSQL 17 once for the run. */
  programs_home: string;
  /** Loopback port of the server's transaction pooler; null if the run has none. */
  pooler_port: number | null;
}

/** A database for one test file. */
export interface TestDatabase {
  /** The URL for the superuser. */
  url: string;
  /** The URL for the functions, which can execute the entry functions and nothing else. */
  functions_url: string;
  /** Ends all sessions of the database and drops it. */
  drop(): Promise<void>;
}

/** The SQLSTATE object_in_use: another copy, or autovacuum, uses the template. */
const TEMPLATE_IN_USE = "55006";
const COPY_ATTEMPTS = 100;
const RETRY_MS = 50;

/** `deno test FILE`, as editors run it, sets no server. An empty variable asks for none. */
const SHARED_SERVER = Deno.env.has("TEST_SERVER") ? "" : await sharedServer();

/** Returns the server of this run. */
export function testServer(): TestServer {
  const server = SHARED_SERVER || Deno.env.get("TEST_SERVER");
  if (!server) throw new Error(`${NO_SERVER}, and TEST_SERVER is empty`);
  return JSON.parse(server) as TestServer;
}

/** Copies the template. `await using` or `drop` drops the copy. */
export function cloneDatabase(): Promise<TestDatabase & AsyncDisposable> {
  return createDatabase(testServer().template);
}

/** Makes a database without migrations, for tests of the programs that apply them. */
export function createEmptyDatabase(): Promise<TestDatabase & AsyncDisposable> {
  return createDatabase("template1");
}

async function createDatabase(template: string): Promise<TestDatabase & AsyncDisposable> {
  const server = testServer();
  const name = server.clone_prefix + crypto.randomUUID().slice(0, 13);
  await asSuperuser(server, async (sql) => {
    for (let attempt = 1;; attempt++) {
      try {
        // Without fsync a copy of the files is faster than the default, which uses the WAL.
        await sql`create database ${sql(name)} template ${sql(template)} strategy file_copy`;
        return;
      } catch (error) {
        const is_busy = error instanceof postgres.PostgresError && error.code === TEMPLATE_IN_USE;
        if (!is_busy || attempt === COPY_ATTEMPTS) throw error;
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      }
    }
  });
  const url = new URL(server.superuser_url);
  url.pathname = `/${name}`;
  const functions_url = new URL(url);
  functions_url.username = server.functions_role.name;
  functions_url.password = server.functions_role.password;
  const drop = () =>
    asSuperuser(server, async (sql) => {
      await sql`drop database ${sql(name)} with (force)`;
    });
  return { url: url.href, functions_url: functions_url.href, drop, [Symbol.asyncDispose]: drop };
}

/**
 * Connects to a database. `await using` ends the sessions.
 * @param fetch_types whether results can have arrays, whose types a session fetches first
 */
export function connect(
  url: string,
  max = 1,
  fetch_types = true,
): postgres.Sql & AsyncDisposable {
  const sql = postgres(url, { max, fetch_types, onnotice: () => {} });
  return Object.assign(sql, { [Symbol.asyncDispose]: () => sql.end() });
}

/** Opens a session. `await using` rolls back what is open and gives it back. */
export async function openSession(
  sql: postgres.Sql,
): Promise<postgres.ReservedSql & AsyncDisposable> {
  const session = await sql.reserve();
  return Object.assign(session, {
    async [Symbol.asyncDispose]() {
      await session`rollback`.finally(() => session.release());
    },
  });
}

async function asSuperuser(server: TestServer, work: (sql: postgres.Sql) => Promise<void>) {
  await using sql = connect(server.superuser_url, 1, false);
  await work(sql);
}
