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

/** Paths of the program. Debian installs it in a folder that is not on every user's PATH. */
const PLACES = ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer", "/usr/local/bin/pgbouncer"];
const START_WAIT_MS = 10_000;
const POLL_MS = 20;

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
    logfile: join(folder, "log"),
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
  const child = new Deno.Command(program, {
    args: ["-q", join(folder, "ini")],
    cwd: folder,
    stdin: "null",
    stdout: "null",
    stderr: "null",
    ...account,
  }).spawn();
  let has_ended = false;
  const ended = child.status.then(() => has_ended = true);
  const close = async () => {
    if (!has_ended) child.kill("SIGKILL");
    await ended;
    await Deno.remove(folder, { recursive: true });
  };
  for (const until = Date.now() + START_WAIT_MS; !await listens(port);) {
    if (has_ended || Date.now() > until) {
      const words = await Deno.readTextFile(join(folder, "log")).catch(() => "");
      await close();
      throw new Error(`pgbouncer did not start: ${words}`);
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  return {
    port,
    /** URL of its console, which takes commands such as `pause` and `resume`. */
    console_url: `postgres://${admin.name}:${admin.password}@127.0.0.1:${port}/pgbouncer`,
    close,
  };
}
