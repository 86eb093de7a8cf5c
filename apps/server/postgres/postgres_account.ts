/**
 * Chooses the account of the operating system that runs PostgreSQL, and the folder of its files.
 *
 * PostgreSQL refuses to run as root. If the caller is root, the user `postgres` runs it, or else
 * `nobody`. If that user cannot enter the data folder (for example below /root), the files of
 * PostgreSQL are in a folder below /var/lib, and a file in the data folder records its path.
 */

import { join } from "node:path";
import { reasonOf } from "../data_dir/settings.ts";

/** The account that runs a program. Empty for the account of the caller. */
export type Account = { uid: number; gid: number } | Record<never, never>;

/** Folder of the databases of a root caller whose data folder the account cannot enter. */
export const FALLBACK_PARENT = "/var/lib/payments-local";
/** File in the data folder that names the fallback folder. */
const RECORD = "postgres_home";
/** The ids of the user `nobody` if /etc/passwd does not have it. */
const NOBODY = { uid: 65534, gid: 65534 };

/** Returns the account that runs PostgreSQL. */
export async function postgresAccount(): Promise<Account> {
  if (Deno.build.os === "windows" || Deno.uid() !== 0) return {};
  const users = await Deno.readTextFile("/etc/passwd").catch(() => "");
  for (const name of ["postgres", "nobody"]) {
    for (const line of users.split("\n")) {
      const [user, _, uid, gid] = line.split(":");
      if (user === name) return { uid: Number(uid), gid: Number(gid) };
    }
  }
  return NOBODY;
}

/**
 * Returns the folder for the databases: the data folder if `account` can enter it,
 * otherwise the recorded fallback folder, which the first call creates.
 * @throws {Error} if the account can enter no folder; the message names DATA_DIR or DATABASE_URL
 */
export async function postgresHome(data_dir: string, account: Account): Promise<string> {
  const record = join(data_dir, RECORD);
  const recorded = await Deno.readTextFile(record).catch(() => "");
  if (recorded.trim() !== "") return recorded.trim();
  if (!("uid" in account) || await canReach(account, data_dir)) return data_dir;
  if (!await canReach(account, "/")) {
    throw new Error(
      "PostgreSQL refuses to run as root, and this root user cannot run programs as uid " +
        `${account.uid}: start as another user, or set DATABASE_URL to your own PostgreSQL server`,
    );
  }
  const home = join(FALLBACK_PARENT, crypto.randomUUID());
  const hint = `The user that runs PostgreSQL (uid ${account.uid}) cannot enter "${data_dir}"`;
  const advice = "Set DATA_DIR to a folder that other users can enter, such as one below /srv";
  try {
    await Deno.mkdir(home, { recursive: true });
    for (const path of [FALLBACK_PARENT, home]) await Deno.chmod(path, 0o755);
  } catch (error) {
    throw new Error(`${hint}, and "${home}" cannot be created: ${reasonOf(error)}. ${advice}`);
  }
  if (!await canReach(account, home)) {
    await Deno.remove(home);
    throw new Error(`${hint} or "${home}". ${advice}`);
  }
  await Deno.writeTextFile(record, `${home}\n`);
  return home;
}

/** Makes the account the owner of `path` and of everything below it. */
export async function giveTo(account: Account, path: string): Promise<void> {
  if (!("uid" in account)) return;
  const { isSymlink, isDirectory } = await Deno.lstat(path);
  if (!isSymlink) await Deno.chown(path, account.uid, account.gid);
  if (!isDirectory) return;
  for await (const entry of Deno.readDir(path)) await giveTo(account, join(path, entry.name));
}

/**
 * Whether a process of the account can enter the folder. The check runs a process there, because
 * other rules than file modes can forbid it.
 */
export async function canReach(account: Account, path: string): Promise<boolean> {
  try {
    const command = new Deno.Command("/bin/sh", { args: ["-c", ":"], cwd: path, ...account });
    return (await command.output()).success;
  } catch (error) {
    if (error instanceof Deno.errors.PermissionDenied) return false;
    throw error;
  }
}
