/**
 * The environment of a run: a migrated PostgreSQL with full durability in a temporary folder,
 * environments with keys, and API servers as processes. Everything is removed at the end.
 */

import postgres from "postgres";
import { join } from "node:path";
import {
  type PostgresServer,
  startPostgres,
} from "../../../apps/server/postgres/embedded_postgres.ts";
import { grantFunctionsRole } from "../../../apps/server/postgres/functions_role.ts";
import { randomPassword } from "../../../apps/server/data_dir/private_file.ts";
import { writeFunctions } from "../../../tools/schema/schema_files.ts";
import { migrate } from "../../../apps/server/migrations/migrate.ts";
import { idGenerator } from "../../../shared/core/ids.ts";
import { freePort } from "../../support/common/free_port.ts";
import { until } from "../../support/common/until.ts";
import { createApiKey, createEnvironment } from "../../support/database/api_keys.ts";
import { launch } from "../../support/common/process.ts";
import type { ClockLine, ServerFault, ServerSettings } from "../../support/service/kill_server.ts";

export type ApiServer = Awaited<ReturnType<typeof openServer>>;

export interface KeyedEnvironment {
  /** The public id. A reset leaves it unchanged. */
  environment_id: string;
  key: string;
}

export type Stage = Awaited<ReturnType<typeof setStage>>;
type AtEnd = (step: () => unknown) => void;

/** Short timeouts, so that the run does not wait long for the leases of killed servers. */
const TIMEOUTS = { attempt_ms: 2_000, lease_ms: 5_000 };
/** Enough connections for servers, probes and audits. Accounts can move to another stage. */
const SETTINGS = { max_connections: "60", wal_level: "logical" };
const ROLE = "pay_functions";
/** With the attributes of Supabase's `postgres` (tests/support/supabase/supabase_roles.sql). */
const OPERATOR = {
  name: "operator",
  attributes: "login createdb createrole replication bypassrls in role pg_create_subscription",
};
/** Longest time until a killed process responds again. */
export const HEALTH_MS = 60_000;

/** Starts PostgreSQL and prepares everything else. */
export async function setStage() {
  const steps: (() => unknown)[] = [];
  /** Runs the registered steps. The last registered one runs first. */
  const end = async () => {
    for (let step = steps.pop(); step !== undefined; step = steps.pop()) {
      await Promise.resolve(step()).catch((error) => console.error(`While ending: ${error}`));
    }
  };
  const atEnd: AtEnd = (step) => void steps.push(async () => await step());
  try {
    /** For journals; removed at the end. */
    const folder = await Deno.makeTempDir({ prefix: "payments-chaos-" });
    if (Deno.build.os !== "windows") await Deno.chmod(folder, 0o755);
    atEnd(() => Deno.remove(folder, { recursive: true }));
    const data_dir = join(folder, "data");
    const server = await startPostgres({ data_dir, durable: true, settings: SETTINGS });
    if (!server.home.startsWith(folder)) {
      atEnd(() => Deno.remove(server.home, { recursive: true }));
    }
    atEnd(() => server.stop());
    /** A superuser's connection, without row-level security. */
    const sql = postgres(server.superuser_url, {
      max: 2,
      // A killed PostgreSQL can accept a connection that nobody serves.
      connect_timeout: 3,
      onnotice: () => {},
      backoff: () => 0.1,
    });
    atEnd(() => sql.end({ timeout: 1 }));
    const urls = await migrateAs(server, sql);
    const server_faults: ServerFault[] = [];
    const secrets = { master_secret: randomPassword(), relay_token: randomPassword() };
    /** By default on a free port, with a direct connection to the database. */
    const startServer = (settings: Partial<ServerSettings> = {}) => {
      const usual = { port: freePort(), database_url: urls.functions_url, ...TIMEOUTS, ...secrets };
      const onFault = (line: unknown) => void server_faults.push(line as ServerFault);
      return openServer({ ...usual, ...settings }, atEnd, onFault);
    };
    return {
      ...{ folder, postgres: server, ...urls, sql, server_faults, startServer, atEnd, end },
      /** One account has all environments by default. */
      makeSandbox: (name: string, account = "chaos") => makeEnvironment(sql, name, account, false),
      makeLiveEnvironment: (account = "chaos") => makeEnvironment(sql, "live", account, true),
      /** Starts two servers; resolves when both are well. */
      async startServers(settings?: Partial<ServerSettings>) {
        const servers = await Promise.all([startServer(settings), startServer(settings)]);
        await untilAllWell(servers);
        return servers;
      },
    };
  } catch (error) {
    await end();
    throw error;
  }
}

/** Migrates as the role that deploys. Returns the URLs of both roles. */
async function migrateAs(server: PostgresServer, sql: postgres.Sql) {
  const operator = { name: OPERATOR.name, password: randomPassword() };
  await sql.unsafe(
    `create role ${operator.name} ${OPERATOR.attributes} password '${operator.password}'`,
  );
  await sql`grant create on database postgres to ${sql(operator.name)}`;
  const operator_url = server.urlFor("postgres", operator);
  // So that the run sees a change of supabase/schemas.
  await writeFunctions();
  await migrate(operator_url);
  const role = { name: ROLE, password: randomPassword() };
  await grantFunctionsRole(sql, role);
  return { operator_url, functions_url: server.urlFor("postgres", role) };
}

export async function untilWell({ base_url }: Pick<ApiServer, "base_url">): Promise<void> {
  await until(`${base_url} is well`, async () => {
    const response = await fetch(`${base_url}/api-v1-payments/health`).catch(() => null);
    await response?.body?.cancel();
    return response?.status === 200;
  }, HEALTH_MS);
}

export async function untilAllWell(servers: readonly ApiServer[]): Promise<void> {
  await Promise.all(servers.map(untilWell));
}

async function openServer(
  settings: ServerSettings,
  atEnd: AtEnd,
  onFault: (line: unknown) => void,
) {
  const open = () =>
    launch(import.meta.resolve("../../support/service/kill_server.ts"), settings, onFault);
  let server = await open();
  atEnd(() => server.kill());
  return {
    port: settings.port,
    base_url: `http://127.0.0.1:${settings.port}/functions/v1`,
    /** Kills it and starts a new one on the same port; resolves when the new one serves. */
    async restart() {
      await server.kill();
      server = await open();
    },
    /** Sets its clock ahead. A restart sets it right again. */
    setAhead: (ahead_ms: number) => server.send({ ahead_ms } satisfies ClockLine),
  };
}

export async function makeEnvironment(
  sql: postgres.Sql,
  name: string,
  account: string,
  livemode: boolean,
): Promise<KeyedEnvironment> {
  const newId = idGenerator(Date.now());
  const environment_id = newId("env_");
  await createEnvironment(sql, { id: environment_id, account, livemode, name });
  const key = await createApiKey(sql, { id: newId("key_"), environment_id, livemode, name });
  return { environment_id, key };
}

/** The values of the variables that `addAccount` names for Stripe. */
export const STRIPE_SECRETS = {
  PROVIDER_STRIPE: "sk_live_chaos",
  PROVIDER_STRIPE_NOTIFICATIONS: "whsec_chaos",
};
