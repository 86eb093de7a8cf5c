/**
 * The environment of a run: a migrated PostgreSQL with full durability in a temporary folder,
 * sandboxes with keys, and API servers as processes. Everything is removed at the end.
 */

import postgres from "postgres";
import { join } from "node:path";
import {
  type PostgresServer,
  startPostgres,
} from "../../apps/server/postgres/embedded_postgres.ts";
import { grantFunctionsRole } from "../../apps/server/postgres/functions_role.ts";
import { applySchemaFiles } from "../../tools/schema/schema_files.ts";
import { migrate } from "../../apps/server/migrations/migrate.ts";
import { randomPassword } from "../../apps/server/data_dir/private_file.ts";
import { launch, type RunProcess } from "./process.ts";
import { makeSandbox, type SandboxKey } from "./sandbox.ts";
import type { ClockLine, ServerFault, ServerSettings } from "./server_process.ts";
import { freePort } from "../support/common/free_port.ts";
import { until } from "../support/common/until.ts";

/** An API server as a process. */
export interface ApiServer {
  readonly port: number;
  readonly base_url: string;
  /** Kills it and starts a new one on the same port; resolves when the new one serves. */
  restart(): Promise<void>;
  /** Sets its clock ahead. A restart sets it right again. */
  setAhead(ahead_ms: number): Promise<void>;
}

/** The environment of a run. */
export interface Stage {
  /** Folder for journals; removed at the end. */
  folder: string;
  postgres: PostgresServer;
  functions_url: string;
  /** The URL of the role that deploys. As Supabase's `postgres` it is no superuser. */
  operator_url: string;
  /** A superuser's connection, without row-level security. */
  sql: postgres.Sql;
  /** Makes a sandbox. @param account one account for all sandboxes by default */
  makeSandbox(name: string, account?: string): Promise<SandboxKey>;
  /** Starts a server. @param settings by default a free port and a direct database connection */
  startServer(settings?: Partial<ServerSettings>): Promise<ApiServer>;
  /** Unexpected errors of all servers. */
  server_faults: ServerFault[];
  /** Registers a step that runs at the end; the last registered step runs first. */
  atEnd(step: () => unknown): void;
  /** Runs the registered steps. */
  end(): Promise<void>;
}

/** Short timeouts, so that the run does not wait long for the leases of killed servers. */
const ATTEMPT_MS = 2_000;
const LEASE_MS = 5_000;
/** Enough connections for servers, probes and audits. Accounts can move to another stage. */
const SETTINGS = { max_connections: "60", wal_level: "logical" };
const ROLE = "pay_functions";
/** With the attributes of Supabase's `postgres` (tests/support/supabase/supabase_roles.sql). */
const OPERATOR = {
  name: "operator",
  attributes: "login createdb createrole replication bypassrls in role pg_create_subscription",
};
/** Longest time until a killed process responds again. */
export const HEALTH_DEADLINE_MS = 60_000;

/** Starts PostgreSQL and prepares everything else. */
export async function setStage(): Promise<Stage> {
  const steps: (() => unknown)[] = [];
  const end = async () => {
    for (let step = steps.pop(); step !== undefined; step = steps.pop()) {
      await Promise.resolve(step()).catch((error) => console.error(`While ending: ${error}`));
    }
  };
  const atEnd = (step: () => unknown) => void steps.push(async () => await step());
  try {
    const folder = await Deno.makeTempDir({ prefix: "payments-chaos-" });
    if (Deno.build.os !== "windows") await Deno.chmod(folder, 0o755);
    atEnd(() => Deno.remove(folder, { recursive: true }));
    const server = await startPostgres({
      data_dir: join(folder, "data"),
      durable: true,
      settings: SETTINGS,
    });
    if (!server.home.startsWith(folder)) {
      atEnd(() => Deno.remove(server.home, { recursive: true }));
    }
    atEnd(() => server.stop());
    const sql = postgres(server.superuser_url, {
      max: 2,
      // A killed PostgreSQL can accept a connection that nobody serves.
      connect_timeout: 3,
      onnotice: () => {},
      backoff: () => 0.1,
    });
    atEnd(() => sql.end({ timeout: 1 }));
    const operator = { name: OPERATOR.name, password: randomPassword() };
    await sql.unsafe(
      `create role ${operator.name} ${OPERATOR.attributes} password '${operator.password}'`,
    );
    await sql`grant create on database postgres to ${sql(operator.name)}`;
    const operator_url = server.urlFor("postgres", operator);
    await migrate(operator_url);
    // The functions can be newer than the last released migration.
    await applySchemaFiles(server.superuser_url);
    const role = { name: ROLE, password: randomPassword() };
    await grantFunctionsRole(sql, role);
    const functions_url = server.urlFor("postgres", role);
    const server_faults: ServerFault[] = [];
    const secrets = { master_secret: randomPassword(), relay_token: randomPassword() };
    return {
      folder,
      postgres: server,
      functions_url,
      operator_url,
      sql,
      makeSandbox: (name, account) => makeSandbox(sql, name, account),
      server_faults,
      startServer: (settings = {}) =>
        startServer(
          {
            port: freePort(),
            database_url: functions_url,
            lease_ms: LEASE_MS,
            attempt_ms: ATTEMPT_MS,
            ...secrets,
            ...settings,
          },
          atEnd,
          (line) => server_faults.push(line as ServerFault),
        ),
      atEnd,
      end,
    };
  } catch (error) {
    await end();
    throw error;
  }
}

/** Waits until the health check of a server and its database succeeds. */
export async function untilWell({ base_url }: ApiServer): Promise<void> {
  await until(`${base_url} is well`, async () => {
    const response = await fetch(`${base_url}/api-v1-payments/health`).catch(() => null);
    await response?.body?.cancel();
    return response?.status === 200;
  }, HEALTH_DEADLINE_MS);
}

async function startServer(
  settings: ServerSettings,
  atEnd: (step: () => unknown) => void,
  onFault: (line: unknown) => void,
): Promise<ApiServer> {
  let server: RunProcess<unknown> = await launch("server_process.ts", settings, onFault);
  const end = async () => {
    server.kill();
    await server.ended;
  };
  atEnd(end);
  return {
    port: settings.port,
    base_url: `http://127.0.0.1:${settings.port}/functions/v1`,
    async restart() {
      await end();
      server = await launch("server_process.ts", settings, onFault);
    },
    setAhead: (ahead_ms) => server.send({ ahead_ms } satisfies ClockLine),
  };
}
