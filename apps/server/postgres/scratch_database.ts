/**
 * Temporary databases, on a PostgreSQL server that is started for them, or on the server of
 * TEST_DATABASE_URL, whose user must be allowed to create databases.
 */

import postgres from "postgres";
import { join } from "node:path";
import { makeMemoryFolder } from "../data_dir/memory_dir.ts";
import { startPostgres } from "./embedded_postgres.ts";

/** Space in memory for the databases: several times what they need. */
const MEMORY_BYTES = 1024 ** 3;

/** A server for temporary databases. */
export interface ScratchServer {
  /**
   * Creates a database, runs `work` with its URL, and drops the database.
   * @param template the URL of a database to copy, which must have no open connections
   */
  withDatabase<T>(work: (url: string) => Promise<T>, template?: string): Promise<T>;
}

export function databaseUrl(server_url: string, database: string): string {
  const url = new URL(server_url);
  url.pathname = `/${database}`;
  return url.href;
}

/** Runs `work` with a server. Stops the server afterwards if it was started here. */
export async function withScratchServer<T>(
  work: (server: ScratchServer) => Promise<T>,
): Promise<T> {
  const external_url = Deno.env.get("TEST_DATABASE_URL");
  if (external_url) return await work(scratchServer(external_url));
  const folder = await makeMemoryFolder("payments-schema-", MEMORY_BYTES);
  const server = await startPostgres({ data_dir: join(folder, "data"), durable: false });
  try {
    return await work(scratchServer(server.superuser_url));
  } finally {
    await server.stop();
    await Deno.remove(server.home, { recursive: true });
    await Deno.remove(folder, { recursive: true });
  }
}

/** Creates the databases on the server of this URL, whose user must be allowed to. */
export function scratchServer(server_url: string): ScratchServer {
  return {
    async withDatabase(work, template) {
      const name = `pay_schema_${crypto.randomUUID().slice(0, 8)}`;
      const sql = postgres(server_url, { max: 1, onnotice: () => {} });
      try {
        const source = template === undefined ? "template1" : new URL(template).pathname.slice(1);
        await sql`create database ${sql(name)} template ${sql(source)}`;
        return await work(databaseUrl(server_url, name));
      } finally {
        await sql`drop database if exists ${sql(name)} with (force)`;
        await sql.end();
      }
    },
  };
}
