/**
 * What every run of the torture stands on: PostgreSQL with all its durability, migrated, in a folder
 * of its own; sandboxes and keys; API servers as processes. All of it is gone at the end.
 */

import postgres from "postgres";
import { join } from "node:path";
import { type PostgresServer, startPostgres } from "../scripts/postgres/embedded_postgres.ts";
import { grantFunctionsRole } from "../scripts/postgres/functions_role.ts";
import { migrate } from "../scripts/schema/migrate.ts";
import { randomPassword } from "../scripts/data_dir/private_file.ts";
import { launch, type RunProcess } from "./process.ts";
import { makeSandbox, type SandboxKey } from "./sandbox.ts";
import type { ClockLine, ServerFault, ServerSettings } from "./server_process.ts";

/** An API server that can be killed; it comes back on the same port. */
export interface ApiServer {
  readonly port: number;
  readonly base_url: string;
  /** `kill -9`, then a new one; resolves when that one serves. */
  restart(): Promise<void>;
  /** Lets its clock run ahead; a restart sets it right. */
  setAhead(ahead_ms: number): Promise<void>;
}

/** The stage. */
export interface Stage {
  /** For journals; gone at the end. */
  folder: string;
  postgres: PostgresServer;
  functions_url: string;
  /** As superuser, past row-level security. */
  sql: postgres.Sql;
  /** @param account by default one account for all sandboxes */
  makeSandbox(name: string, account?: string): Promise<SandboxKey>;
  /** @param database_url the functions' own unless it leads through a proxy */
  startServer(settings?: Partial<ServerSettings>): Promise<ApiServer>;
  /** Faults of the servers' own: 500s and what failed behind an answer. */
  server_faults: ServerFault[];
  /** Registers what is to be ended, in reverse order. */
  atEnd(step: () => unknown): void;
  end(): Promise<void>;
}

/** Attempts are quick to fail, so that leases can be short and the run need not wait for the dead. */
const ATTEMPT_MS = 2_000;
const LEASE_MS = 5_000;
/** The whole run fits: servers, probes, audit. */
const MAX_CONNECTIONS = "60";
const ROLE = "pay_functions";
/** Longest time until a killed process answers again. */
export const HEALTH_DEADLINE_MS = 60_000;

/** Sets the stage. */
export async function setStage(): Promise<Stage> {
  const steps: (() => unknown)[] = [];
  const end = async () => {
    for (let step = steps.pop(); step !== undefined; step = steps.pop()) {
      await Promise.resolve(step()).catch((error) => console.error(`While ending: ${error}`));
    }
  };
  const atEnd = (step: () => unknown) => void steps.push(async () => await step());
  try {
    const folder = await Deno.makeTempDir({ prefix: "payments-torture-" });
    if (Deno.build.os !== "windows") await Deno.chmod(folder, 0o755);
    atEnd(() => Deno.remove(folder, { recursive: true }));
    const server = await startPostgres({
      data_dir: join(folder, "data"),
      durable: true,
      settings: { max_connections: MAX_CONNECTIONS },
    });
    if (!server.home.startsWith(folder)) {
      atEnd(() => Deno.remove(server.home, { recursive: true }));
    }
    atEnd(() => server.stop());
    await migrate(server.superuser_url);
    const sql = postgres(server.superuser_url, { max: 2, onnotice: () => {}, backoff: () => 0.1 });
    atEnd(() => sql.end({ timeout: 1 }));
    const role = { name: ROLE, password: randomPassword() };
    await grantFunctionsRole(sql, role);
    const functions_url = server.urlFor("postgres", role);
    const server_faults: ServerFault[] = [];
    const secrets = { master_secret: randomPassword(), relay_token: randomPassword() };
    return {
      folder,
      postgres: server,
      functions_url,
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

/** A port that nobody uses at this moment. */
export function freePort(): number {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr;
  listener.close();
  return port;
}

/** Waits until something is so. Errors: it is not so in time. */
export async function until(
  what: string,
  deadline_ms: number,
  is_so: () => boolean | Promise<boolean>,
): Promise<void> {
  const give_up_at = performance.now() + deadline_ms;
  while (!await is_so()) {
    if (performance.now() > give_up_at) throw new Error(`Not within ${deadline_ms} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Waits until the health check of a server and its database succeeds. */
export async function untilWell({ base_url }: ApiServer): Promise<void> {
  await until(`${base_url} is well`, HEALTH_DEADLINE_MS, async () => {
    const response = await fetch(`${base_url}/api-v1-payments/health`).catch(() => null);
    await response?.body?.cancel();
    return response?.status === 200;
  });
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
