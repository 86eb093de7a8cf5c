/**
 * A PostgreSQL cluster (the folder of all databases of one server) on disk: made once, owned by
 * one account, its superuser's password beside it, and free of a server that outlived its parent.
 */

import { join } from "node:path";
import { type Account, giveTo } from "./postgres_account.ts";
import { randomPassword, writePrivateFile } from "../data_dir/private_file.ts";
import { SettingsError } from "../data_dir/settings.ts";
import { POSTGRES_VERSION, type PostgresPrograms } from "./postgres_package.ts";

/** The superuser of every cluster made here. */
export const SUPERUSER = "postgres";

/** How long a leftover server may take for each way of ending it, in order. */
const LEFTOVER_WAITS = [
  { signal: "SIGINT", wait_ms: 10_000 }, // fast: rolls back and writes a checkpoint
  { signal: "SIGQUIT", wait_ms: 5_000 }, // immediate: the next start recovers from the log
  { signal: "SIGKILL", wait_ms: 5_000 },
] as const;
const POLL_MS = 20;

/** A cluster that is ready to be served. */
export interface PostgresCluster {
  /** The folder that `postgres -D` takes. */
  path: string;
  /** The superuser's password: 256 random bits, kept in a file of mode 600. */
  password: string;
  /** Who owns the folder and so must run the server. */
  account: Account;
}

/**
 * Opens `<home>/postgres`, making it when there is none: UTF-8, built-in locale C.UTF-8 (the same
 * order on every platform), passwords required. Complete or absent, as it is renamed into place.
 * A folder that belongs to another account is served as that account, or given to ours if root's.
 * Errors: initdb's own words; a missing password file; a folder of another major version.
 */
export async function openCluster(
  home: string,
  programs: PostgresPrograms,
  options: { account: Account; durable: boolean; signal?: AbortSignal | undefined },
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
 * A server reads the folders of its own major version alone; a minor version makes no difference.
 */
async function refuseOtherMajorVersion(path: string): Promise<void> {
  const [major] = POSTGRES_VERSION.split(".");
  const found = (await Deno.readTextFile(join(path, "PG_VERSION")).catch(() => "")).trim();
  if (found === "" || found === major) return;
  throw new SettingsError(
    `The databases in "${path}" are of PostgreSQL ${found}, and this version of the project runs ` +
      `PostgreSQL ${major}. Nothing was changed: start the version that made them, and move the ` +
      'data with "Backup" and "Restore" of docs/operations.md, or set DATA_DIR to a new folder',
  );
}

/** Runs initdb beside the final place; returns the new superuser's password. */
async function makeCluster(
  home: string,
  programs: PostgresPrograms,
  options: { account: Account; durable: boolean; signal?: AbortSignal | undefined },
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
    ],
    cwd: home,
    ...options.account,
    ...(options.signal && { signal: options.signal }),
  }).output();
  await Deno.remove(password_copy);
  if (!success) {
    const words = new TextDecoder().decode(stderr) || new TextDecoder().decode(stdout);
    throw new Error(`Could not make the databases in "${home}":\n${words.trim()}`);
  }
  writePrivateFile(password_file, password);
  await Deno.rename(unfinished, join(home, "postgres"));
  return password;
}

/**
 * Ends a server of this cluster that outlived the process which started it (that one was killed),
 * and removes a `postmaster.pid` whose process is gone or is somebody else by now: process ids are
 * reused soon in containers. The caller holds the lock that makes it the only one to start here.
 */
export async function endLeftoverServer(cluster: string): Promise<void> {
  const pid_file = join(cluster, "postmaster.pid");
  const text = await Deno.readTextFile(pid_file).catch(() => "");
  if (text === "" || Deno.build.os === "windows") return;
  const pid = Number.parseInt(text);
  for (const { signal, wait_ms } of LEFTOVER_WAITS) {
    if (!await serves(pid, cluster)) break;
    Deno.kill(pid, signal);
    const until = Date.now() + wait_ms;
    while (Date.now() < until && await serves(pid, cluster)) await pause(POLL_MS);
  }
  if (await serves(pid, cluster)) {
    throw new Error(`A PostgreSQL server (process ${pid}) still uses "${cluster}": end it first`);
  }
  await Deno.remove(pid_file).catch(() => {});
}

/** Whether the process lives and is the server of this cluster. */
async function serves(pid: number, cluster: string): Promise<boolean> {
  if (!(pid > 1)) return false;
  if (Deno.build.os === "linux") {
    const folder = await Deno.readLink(`/proc/${pid}/cwd`).catch(() => "");
    return folder === await Deno.realPath(cluster);
  }
  const { stdout } = await new Deno.Command("/bin/ps", { args: ["-o", "command=", "-p", `${pid}`] })
    .output();
  return new TextDecoder().decode(stdout).includes(cluster);
}

function pause(delay_ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, delay_ms));
}
