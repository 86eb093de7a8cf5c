/**
 * Which account of the operating system runs PostgreSQL, and in which folder.
 *
 * PostgreSQL refuses to run as root. A caller who is root lends it to the user `postgres`, else
 * `nobody`; if that user cannot reach the data folder (say, below /root) the files of PostgreSQL
 * live in a folder of their own below /var/lib and the data folder records which.
 */

import { join } from "node:path";

/** Who runs a program: empty for the caller's own account. */
export type Account = { uid: number; gid: number } | Record<never, never>;

/** Where a root caller's databases go when their account cannot reach the data folder. */
const FALLBACK_PARENT = "/var/lib/payments-local";
/** The file of the data folder that names the fallback folder. */
const RECORD = "postgres_home";
/** The user `nobody` where no list of users says otherwise. */
const NOBODY = { uid: 65534, gid: 65534 };

/** The account that runs PostgreSQL for this caller. */
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
 * The folder for the programs and the databases: the data folder itself whenever `account` can
 * reach it, otherwise the recorded fallback, made on the first call.
 * Errors: no folder can be made that the account can reach; the message names DATA_DIR.
 */
export async function postgresHome(data_dir: string, account: Account): Promise<string> {
  const record = join(data_dir, RECORD);
  const recorded = await Deno.readTextFile(record).catch(() => "");
  if (recorded.trim() !== "") return recorded.trim();
  if (!("uid" in account) || await canReach(account, data_dir)) return data_dir;
  if (!await canReach(account, "/")) {
    throw new Error(
      `PostgreSQL does not run as root, and this root may not run programs as uid ${account.uid}: ` +
        "start as another user, or set DATABASE_URL to a PostgreSQL server of your own",
    );
  }
  const home = join(FALLBACK_PARENT, crypto.randomUUID());
  const hint = `The user that runs PostgreSQL (uid ${account.uid}) cannot reach "${data_dir}"`;
  const advice = "Set DATA_DIR to a folder that other users may enter, such as one below /srv";
  try {
    await Deno.mkdir(home, { recursive: true });
    for (const path of [FALLBACK_PARENT, home]) await Deno.chmod(path, 0o755);
  } catch (error) {
    throw new Error(`${hint}, and "${home}" cannot be made: ${message(error)}. ${advice}`);
  }
  if (!await canReach(account, home)) {
    await Deno.remove(home);
    throw new Error(`${hint}, nor "${home}". ${advice}`);
  }
  await Deno.writeTextFile(record, `${home}\n`);
  return home;
}

/** Gives `path` and everything below it to the account. */
export async function giveTo(account: Account, path: string): Promise<void> {
  if (!("uid" in account)) return;
  const { isSymlink, isDirectory } = await Deno.lstat(path);
  if (!isSymlink) await Deno.chown(path, account.uid, account.gid);
  if (!isDirectory) return;
  for await (const entry of Deno.readDir(path)) await giveTo(account, join(path, entry.name));
}

/** Whether a process of the account may stand in the folder: tried, since modes are not all. */
async function canReach(account: Account, path: string): Promise<boolean> {
  try {
    const command = new Deno.Command("/bin/sh", { args: ["-c", ":"], cwd: path, ...account });
    return (await command.output()).success;
  } catch (error) {
    if (error instanceof Deno.errors.PermissionDenied) return false;
    throw error;
  }
}

function message(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
