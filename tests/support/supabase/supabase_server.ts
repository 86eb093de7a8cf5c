/**
 * Runs a PostgreSQL server set up like Supabase's: `supabase_admin` is its superuser, and
 * `postgres` is not. Version 17 is the embedded server. Version 15 is Debian's, where it is
 * installed.
 */

import { outputOf } from "../common/running_command.ts";
import { until } from "../common/until.ts";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { giveTo, postgresAccount } from "../../../apps/server/postgres/postgres_account.ts";
import {
  installPostgres,
  type PostgresPrograms,
} from "../../../apps/server/postgres/postgres_package.ts";
import { makeMemoryFolder } from "../../../apps/server/data_dir/memory_dir.ts";
import { launchPostgres } from "../../../apps/server/postgres/postgres_process.ts";
import { randomPassword } from "../../../apps/server/data_dir/private_file.ts";
import { freePort } from "../common/free_port.ts";
import { connect, testServer } from "../database/database.ts";
import { oncePerRun } from "../database/once_per_run.ts";
import { STAND_INS } from "../database/scheduled_database.ts";

const ROLES = fileURLToPath(new URL("supabase_roles.sql", import.meta.url));
/** The folder of the programs in Debian's package of version 15. */
export const DEBIAN_15 = "/usr/lib/postgresql/15/bin";
/**
 * Control files with the settings of the real ones that decide the schema. On Supabase `postgres`
 * may create both extensions. Here they are trusted for it.
 */
const CONTROL = {
  pg_cron: "default_version = '1.6'\nrelocatable = false\nschema = pg_catalog\ntrusted = true\n",
  pg_net: "default_version = '0.20.4'\nrelocatable = false\ntrusted = true\n",
};
const EXTENSION_VERSIONS = { pg_cron: "1.6", pg_net: "0.20.4" };
const PORT_ATTEMPTS = 5;
/** Space in memory for its files: several times what a test run needs. */
const MEMORY_BYTES = 2 * 1024 ** 3;

/** The supported versions, which are tested. */
export const VERSIONS = [17, 15] as const;
type Version = typeof VERSIONS[number];

/** A running server. */
export type SupabaseServer = Awaited<ReturnType<typeof startSupabaseServer>>;

/** Folders on the disks of a server. */
export interface Disks {
  data: string;
  /** By default that of the databases. */
  wal?: string;
}

/** Options of a server. */
interface ServerOptions {
  /** Whether it also offers pg_cron and pg_net; version 17 only. */
  offers_extensions?: boolean;
  /** Folders for the databases and for the write-ahead log, by default in memory. */
  disks?: Disks;
}

/** Whether the machine has the programs, or can fetch them. */
export async function hasVersion(version: Version): Promise<boolean> {
  return version === 17 || await Deno.stat(DEBIAN_15).then(() => true, () => false);
}

/** Starts a server that has only the objects that Supabase creates. */
export async function startSupabaseServer(
  version: Version,
  settings: Record<string, string> = {},
  { offers_extensions = false, disks }: ServerOptions = {},
) {
  const folder = await makeMemoryFolder("payments-supabase-", MEMORY_BYTES);
  const account = await postgresAccount();
  const programs = await programsFor(version, offers_extensions ? folder : null);
  const path = join(disks?.data ?? folder, "data");
  let password = disks?.wal === undefined
    ? await copyCluster(version, programs, path)
    : await makeCluster(programs, path, join(disks.wal, "wal"));
  const launch = async (port: number) =>
    await launchPostgres(
      programs,
      { path, password, account },
      { port, socket_folder: null },
      { fsync: "off", full_page_writes: "off", ...settings },
      join(folder, "log"),
    );
  const [first, port] = await launchOnFreePort(launch);
  let run = first;
  const urlFor = (user: string) => `postgres://${user}:${password}@127.0.0.1:${port}/postgres`;
  await using sql = connect(urlFor("supabase_admin"));
  await sql.unsafe(await Deno.readTextFile(ROLES)).simple();
  // Copies of a cluster have one password.
  password = randomPassword();
  for (const role of ["supabase_admin", "postgres", "authenticator"]) {
    await sql.unsafe(`alter role ${role} password '${password}'`);
  }
  const close = async () => {
    await run.end();
    await Deno.remove(folder, { recursive: true });
  };
  return {
    port,
    /** The URL of the database `postgres` for `supabase_admin`. */
    admin_url: urlFor("supabase_admin"),
    /** The URL for `postgres`, the role that deploys and, on Supabase, runs the functions. */
    url: urlFor("postgres"),
    password,
    /** Returns the process id of the current postmaster. */
    pid: () => run.pid,
    /** Stops the server, runs `meanwhile`, and starts the server again on the same port. */
    async restart(meanwhile?: () => Promise<void>) {
      await run.end();
      await meanwhile?.();
      await until("the server has started again", async () => {
        const next = await launch(port);
        if (!("failure" in next)) run = next;
        // Backends of a killed server can still be there.
        else if (next.failure !== "orphans") throw new Error(next.output);
        return !("failure" in next);
      });
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** Copies the cluster of this version. Returns the password of its superuser. */
async function copyCluster(
  version: Version,
  programs: PostgresPrograms,
  path: string,
): Promise<string> {
  const name = `supabase_${version}`;
  const original = join(testServer().folder, `${name}_data`);
  const password = await oncePerRun(name, () => makeCluster(programs, original));
  await outputOf(["cp", "-pR", original, path]);
  return password;
}

/** Makes a cluster. Returns the password of its superuser. */
async function makeCluster(
  programs: PostgresPrograms,
  path: string,
  wal?: string,
): Promise<string> {
  const account = await postgresAccount();
  const password = randomPassword();
  const password_file = `${path}_password`;
  await Deno.writeTextFile(password_file, password);
  const folders = wal === undefined ? [path] : [path, wal];
  for (const each of folders) {
    // One of an attempt that failed.
    await Deno.remove(each, { recursive: true }).catch(() => {});
    await Deno.mkdir(each, { mode: 0o700 });
  }
  for (const each of [...folders, password_file]) await giveTo(account, each);
  await outputOf([
    programs.initdb,
    `--pgdata=${path}`,
    "--username=supabase_admin",
    `--pwfile=${password_file}`,
    "--auth=scram-sha-256",
    "--encoding=UTF8",
    "--locale=C.UTF-8",
    "--no-sync",
    ...(wal === undefined ? [] : [`--waldir=${wal}`]),
  ], { cwd: dirname(path), account });
  await Deno.remove(password_file);
  return password;
}

/** Finds the programs. With extensions they are installed in a folder of their own. */
async function programsFor(version: Version, own: string | null): Promise<PostgresPrograms> {
  if (version === 15) return programsOf(DEBIAN_15);
  return own === null
    ? await installPostgres(testServer().programs_home)
    : await installWithExtensions(own);
}

function programsOf(folder: string): PostgresPrograms {
  const [initdb, pg_ctl, server] = ["initdb", "pg_ctl", "postgres"].map((name) =>
    join(folder, name)
  );
  return { initdb: initdb!, pg_ctl: pg_ctl!, postgres: server! };
}

async function launchOnFreePort(launch: (port: number) => ReturnType<typeof launchPostgres>) {
  for (let attempt = 1;; attempt++) {
    const port = freePort();
    const run = await launch(port);
    if (!("failure" in run)) return [run, port] as const;
    if (run.failure !== "port_taken" || attempt === PORT_ATTEMPTS) throw new Error(run.output);
  }
}

/** Installs PostgreSQL 17 with the extensions in a folder of its own. */
async function installWithExtensions(home: string): Promise<PostgresPrograms> {
  const programs = await installPostgres(home);
  const folder = join(dirname(dirname(programs.postgres)), "share/postgresql/extension");
  for (const name of ["pg_cron", "pg_net"] as const) {
    await Deno.writeTextFile(join(folder, `${name}.control`), CONTROL[name]);
    await Deno.copyFile(STAND_INS[name], join(folder, `${name}--${EXTENSION_VERSIONS[name]}.sql`));
    await Deno.chmod(join(folder, `${name}--${EXTENSION_VERSIONS[name]}.sql`), 0o644);
  }
  return programs;
}
