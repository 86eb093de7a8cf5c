/**
 * Runs pgbouncer between the functions and a server, on a free loopback port. It pools
 * transactions, as Supabase's pooler does at port 6543.
 */

import { join } from "node:path";
import { giveTo, postgresAccount } from "../../../apps/server/postgres/postgres_account.ts";
import { randomPassword } from "../../../apps/server/data_dir/private_file.ts";
import type { LoginRole } from "../../../apps/server/postgres/embedded_postgres.ts";
import { freePort } from "../common/free_port.ts";
import { findProgram, listens } from "../common/programs.ts";
import { launchCommand } from "../common/running_command.ts";
import { until } from "../common/until.ts";

/** Paths of the program. Debian installs it in a folder that is not on every user's PATH. */
const PLACES = ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer", "/usr/local/bin/pgbouncer"];

/** Returns the path of the program, or null if it is not installed. */
export function findPgbouncer(): Promise<string | null> {
  return findProgram(PLACES);
}

/**
 * Starts a pooler for every database of a loopback server.
 * @param settings replace our settings in the section [pgbouncer]
 */
export async function startPgbouncer(
  server_port: number,
  role: LoginRole,
  settings: Record<string, string | number> = {},
) {
  const program = await findPgbouncer();
  if (program === null) throw new Error("pgbouncer is not installed");
  const folder = await Deno.makeTempDir({ prefix: "payments-pgbouncer-" });
  const admin: LoginRole = { name: "console", password: randomPassword() };
  const port = Number(settings.listen_port ?? freePort());
  const all = {
    listen_addr: "127.0.0.1",
    listen_port: port,
    unix_socket_dir: "",
    auth_type: "scram-sha-256",
    auth_file: join(folder, "users"),
    admin_users: admin.name,
    pool_mode: "transaction",
    default_pool_size: 8,
    max_client_conn: 1_000,
    server_idle_timeout: 5,
    ...settings,
  };
  await Deno.writeTextFile(
    join(folder, "users"),
    [role, admin].map(({ name, password }) => `"${name}" "${password}"\n`).join(""),
  );
  await Deno.writeTextFile(
    join(folder, "ini"),
    `[databases]\n* = host=127.0.0.1 port=${server_port}\n[pgbouncer]\n` +
      Object.entries(all).map(([name, value]) => `${name} = ${value}\n`).join(""),
  );
  // Like PostgreSQL, pgbouncer refuses to run as root.
  const account = await postgresAccount();
  await giveTo(account, folder);
  const pooler = launchCommand({ args: [program, join(folder, "ini")], cwd: folder, account });
  const close = async () => {
    await pooler.end("SIGKILL");
    await Deno.remove(folder, { recursive: true });
  };
  await until("pgbouncer listens", async () => pooler.hasEnded() || await listens(port));
  if (pooler.hasEnded()) throw new Error(`pgbouncer did not start: ${pooler.output()}`);
  return {
    port,
    /** URL of its console, which takes commands such as `pause` and `resume`. */
    console_url: `postgres://${admin.name}:${admin.password}@127.0.0.1:${port}/pgbouncer`,
    close,
    [Symbol.asyncDispose]: close,
  };
}
