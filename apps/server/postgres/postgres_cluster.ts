/**
 * A PostgreSQL cluster on disk: the folder of all databases of one server. This module creates it
 * once, with one owner and a file for the password of its superuser, and ends a server that a
 * killed process has left running in it.
 */

import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { type Account, giveTo } from "./postgres_account.ts";
import { randomPassword, writePrivateFile } from "../data_dir/private_file.ts";
import { SettingsError } from "../data_dir/settings.ts";
import { POSTGRES_VERSION, type PostgresPrograms } from "./postgres_package.ts";

/** The superuser of every cluster that this module creates. */
export const SUPERUSER = "postgres";

/** The signals that end a leftover server, in order, and the time to wait after each. */
const LEFTOVER_WAITS = [
  { signal: "SIGINT", wait_ms: 10_000 }, // fast shutdown: rolls back and writes a checkpoint
  { signal: "SIGQUIT", wait_ms: 5_000 }, // immediate shutdown: the next start recovers
  { signal: "SIGKILL", wait_ms: 5_000 },
] as const;
const POLL_MS = 20;

/** A cluster that a server can run on. */
export interface PostgresCluster {
  /** The folder, for `postgres -D`. */
  path: string;
  /** The password of the superuser: 256 random bits, stored in a file of mode 600. */
  password: string;
  /** The owner of the folder, which must run the server. */
  account: Account;
}

/** Longest path of a Unix socket in bytes; macOS has the smallest. */
const SOCKET_PATH_BYTES = 103;

/**
 * Returns the folder of the server's Unix socket, which costs less than TCP. Null: its path would
 * be too long, or its file system has no sockets.
 */
export function socketFolder({ path }: Pick<PostgresCluster, "path">): string | null {
  const probe = `${path}/.s.PGSQL.probe`;
  const longest = new TextEncoder().encode(probe).length;
  if (Deno.build.os === "windows" || longest > SOCKET_PATH_BYTES) return null;
  try {
    Deno.listen({ transport: "unix", path: probe }).close();
    return path;
  } catch {
    return null;
  }
}

interface ClusterOptions {
  account: Account;
  durable: boolean;
  wal_segment_mb?: number | undefined;
  signal?: AbortSignal | undefined;
}

/**
 * Opens `<home>/postgres`, and creates it if it is missing: with UTF-8, the built-in locale C.UTF-8
 * (the same sort order on every platform) and passwords for all connections. It is renamed into
 * place, so it is complete or absent. If another account owns the folder, the server runs as that
 * account; a folder of root is given to `account`.
 * @throws {Error} if initdb fails, or the password file is missing
 * @throws {SettingsError} if the folder is of another major version of PostgreSQL
 */
export async function openCluster(
  home: string,
  programs: PostgresPrograms,
  options: ClusterOptions,
): Promise<PostgresCluster> {
  const path = join(home, "postgres");
  const password_file = join(home, "postgres_password");
  const owner = await Deno.stat(path).catch(() => null);
  if (owner === null) {
    const password = await makeCluster(home, programs, options);
    return { path, password, account: options.account };
  }
  await refuseOtherMajorVersion(path);
  const password = await Deno.readTextFile(password_file).catch(() => {
    throw new Error(
      `The password of the databases in "${path}" is missing: restore "${password_file}", ` +
        `or delete "${path}" to start with an empty database`,
    );
  });
  let account = options.account;
  if ("uid" in account && owner.uid !== account.uid) {
    if (owner.uid) account = { uid: owner.uid, gid: owner.gid ?? owner.uid };
    else await giveTo(account, path);
  }
  return { path, password: password.trim(), account };
}

/**
 * Throws for a cluster of another major version, because a server only reads those of its own.
 * Minor versions are compatible.
 */
async function refuseOtherMajorVersion(path: string): Promise<void> {
  const [major] = POSTGRES_VERSION.split(".");
  const found = (await Deno.readTextFile(join(path, "PG_VERSION")).catch(() => "")).trim();
  if (found === "" || found === major) return;
  throw new SettingsError(
    `The databases in "${path}" are of PostgreSQL ${found}, and this version of the project runs ` +
      `PostgreSQL ${major}. Nothing was changed: start the version that created them and move ` +
      'the data with "Backup" and "Restore" of docs/operations/backup.md, or set DATA_DIR to a new folder',
  );
}

/** Runs initdb in a temporary folder and renames it. Returns the password of the superuser. */
async function makeCluster(
  home: string,
  programs: PostgresPrograms,
  options: ClusterOptions,
): Promise<string> {
  const password_file = join(home, "postgres_password");
  const unfinished = join(home, "postgres.new");
  const password_copy = join(home, "postgres_password.new");
  await Deno.remove(unfinished, { recursive: true }).catch(() => {});
  await Deno.mkdir(unfinished, { mode: 0o700 });
  const password = randomPassword();
  writePrivateFile(password_copy, password);
  await giveTo(options.account, unfinished);
  await giveTo(options.account, password_copy);
  const { success, stdout, stderr } = await new Deno.Command(programs.initdb, {
    args: [
      `--pgdata=${unfinished}`,
      `--username=${SUPERUSER}`,
      `--pwfile=${password_copy}`,
      "--auth=scram-sha-256",
      "--encoding=UTF8",
      "--locale=C",
      "--locale-provider=builtin",
      "--builtin-locale=C.UTF-8",
      ...(options.durable ? [] : ["--no-sync"]),
      ...(options.wal_segment_mb ? [`--wal-segsize=${options.wal_segment_mb}`] : []),
    ],
    cwd: home,
    ...options.account,
    ...(options.signal && { signal: options.signal }),
  }).output();
  await Deno.remove(password_copy);
  if (!success) {
    const output = new TextDecoder().decode(stderr) || new TextDecoder().decode(stdout);
    throw new Error(`Could not create the databases in "${home}":\n${output.trim()}`);
  }
  writePrivateFile(password_file, password);
  await Deno.rename(unfinished, join(home, "postgres"));
  return password;
}

/**
 * Ends a server of this cluster whose parent process was killed, and removes `postmaster.pid` and
 * its sockets. The process id in that file can belong to another program by now, because containers
 * reuse ids soon. The caller must hold the lock of the folder. Throws if the server does not end.
 */
export async function endLeftoverServer(cluster: string): Promise<void> {
  const pid_file = join(cluster, "postmaster.pid");
  const text = await Deno.readTextFile(pid_file).catch(() => "");
  if (text === "" || Deno.build.os === "windows") return;
  const pid = Number.parseInt(text);
  for (const { signal, wait_ms } of LEFTOVER_WAITS) {
    if (!await isServerOf(cluster, pid)) break;
    Deno.kill(pid, signal);
    const until = Date.now() + wait_ms;
    while (Date.now() < until && await isServerOf(cluster, pid)) await pause(POLL_MS);
  }
  if (await isServerOf(cluster, pid)) {
    throw new Error(`A PostgreSQL server (process ${pid}) still uses "${cluster}": end it first`);
  }
  await Deno.remove(pid_file).catch(() => {});
  for await (const { name } of Deno.readDir(cluster)) {
    if (name.startsWith(".s.PGSQL.")) await Deno.remove(join(cluster, name)).catch(() => {});
  }
}

export async function hasServer(cluster: string): Promise<boolean> {
  const text = await Deno.readTextFile(join(cluster, "postmaster.pid")).catch(() => "");
  return await isServerOf(cluster, Number.parseInt(text));
}

/** Whether a process with this id exists and is the server of this cluster. */
async function isServerOf(cluster: string, pid: number): Promise<boolean> {
  if (!(pid > 1)) return false;
  if (Deno.build.os === "linux") {
    const folder = await Deno.readLink(`/proc/${pid}/cwd`).catch(() => "");
    return folder === await Deno.realPath(cluster);
  }
  const { stdout } = await new Deno.Command("/bin/ps", { args: ["-o", "command=", "-p", `${pid}`] })
    .output();
  return new TextDecoder().decode(stdout).includes(cluster);
}
