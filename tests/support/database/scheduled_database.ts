/**
 * A database with a stand-in of pg_cron and pg_net. A role that is no superuser migrates it, as on
 * a hosted platform. The test runs the jobs and responds to the requests.
 */

import postgres from "postgres";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { migrate, MIGRATIONS_DIR } from "../../../apps/server/migrations/migrate.ts";
import { connect, createEmptyDatabase, type TestDatabase } from "./database.ts";

/** The scripts that install the stand-ins, by the name of the extension. */
export const STAND_INS = {
  pg_cron: fileURLToPath(new URL("./pg_cron.sql", import.meta.url)),
  pg_net: fileURLToPath(new URL("./pg_net.sql", import.meta.url)),
};
/** Version of the migration that schedules the jobs. */
const SCHEDULE = "20261124001200";

/** A database whose jobs the test runs. */
export interface ScheduledDatabase extends TestDatabase, AsyncDisposable {
  /** A connection as superuser. */
  sql: postgres.Sql;
  /** A connection as the role that migrated. The jobs run as this role. */
  jobs: postgres.Sql;
  migrator: string;
  /** Runs the command of a job. */
  runJob(name: string): Promise<void>;
  /** Removes the queued requests and returns them. */
  takeRequests(): Promise<QueuedRequest[]>;
  /** Removes the queued requests and stores a response to each, as pg_net's worker does. */
  respondToRequests(response: PgNetResponse): Promise<void>;
}

/** A response as pg_net stores it: a status, or an error without a status. */
export type PgNetResponse =
  | { status_code: number }
  | { error_msg: string; timed_out?: boolean };

/** A request that pg_net would send. */
interface QueuedRequest {
  method: string;
  url: string;
  headers: Record<string, string>;
  body: string;
  timeout_milliseconds: number;
}

/** Makes the database. It installs the stand-in before the migration that schedules the jobs. */
export async function createScheduledDatabase(): Promise<ScheduledDatabase> {
  const database = await createEmptyDatabase();
  const sql = connect(database.url, 2);
  const name = new URL(database.url).pathname.slice(1);
  const migrator = `${name}_migrator`;
  const password = crypto.randomUUID();
  await sql.unsafe(`
    create role "${migrator}" login createrole nosuperuser password '${password}';
    grant pay_owner, pay_api, pay_operator to "${migrator}" with admin option;
    alter database "${name}" owner to "${migrator}";
  `).simple();
  const url = new URL(database.url);
  url.username = migrator;
  url.password = password;
  await migrateBut(url.href, SCHEDULE);
  for (const path of Object.values(STAND_INS)) {
    await sql.unsafe(await Deno.readTextFile(path)).simple();
  }
  await migrate(url.href);
  const jobs = connect(url.href);
  const drop = async () => {
    await Promise.all([sql.end(), jobs.end()]);
    await database.drop();
    const server = new URL(database.url);
    server.pathname = "/postgres";
    await using admin = connect(server.href);
    await admin.unsafe(`drop role "${migrator}"`);
  };
  return {
    ...database,
    sql,
    jobs,
    migrator,
    async runJob(name) {
      const [job] = await sql`select command from cron.job where jobname = ${name}`;
      await jobs.unsafe(job!.command);
    },
    async takeRequests() {
      return await sql<QueuedRequest[]>`
        delete from net.http_request_queue
        returning method, url, headers, convert_from(body, 'UTF8') as body, timeout_milliseconds`;
    },
    async respondToRequests(response) {
      const { status_code, error_msg, timed_out } = {
        status_code: null,
        error_msg: null,
        timed_out: false,
        ...response,
      };
      await sql`with taken as (delete from net.http_request_queue returning id)
        insert into net._http_response (id, status_code, timed_out, error_msg)
        select id, ${status_code}, ${
        error_msg === null ? false : timed_out
      }, ${error_msg} from taken`;
    },
    drop,
    [Symbol.asyncDispose]: drop,
  };
}

/** Applies every migration before a version. */
async function migrateBut(url: string, version: string): Promise<void> {
  const folder = await Deno.makeTempDir();
  try {
    for await (const { name } of Deno.readDir(MIGRATIONS_DIR)) {
      if (name < version) await Deno.copyFile(join(MIGRATIONS_DIR, name), join(folder, name));
    }
    await migrate(url, undefined, folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}
