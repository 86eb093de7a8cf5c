/**
 * Data folders that live as long as one process. Their databases are copies of a template in the
 * cache, which the first one makes, so that a later one is ready in less than a second.
 *
 * A small shell process, the reaper, removes a folder when the process that made it has ended in
 * any way, also by SIGKILL: it waits until its standard input closes, ends the server of the
 * folder, and deletes the files. It is in a process group of its own, so a signal to the group of
 * the process does not reach it.
 */

import { createHash } from "node:crypto";
import { tmpdir } from "node:os";
import { join } from "node:path";
import PACKAGE from "../../../packages/sandbox/package.json" with { type: "json" };
import { memoryDir } from "../data_dir/memory_dir.ts";
import { openConnection } from "../postgres/connection.ts";
import { postgresCache } from "../postgres/postgres_cache.ts";
import { type Account, postgresAccount, postgresHome } from "../postgres/postgres_account.ts";
import { exists, type InstallOptions, POSTGRES_VERSION } from "../postgres/postgres_package.ts";
import { startPostgres } from "../postgres/embedded_postgres.ts";
import { listMigrations, migrate, MIGRATIONS_DIR } from "../migrations/migrate.ts";

interface TemporaryData {
  path: string;
  /** Ends the server if it still runs, and deletes the folder. Needed on Windows only. */
  remove(): Promise<void>;
}

/** Settings of servers without lasting data. Several of them fit on a small machine. */
export const TEMPORARY_SETTINGS: Readonly<Record<string, string>> = {
  shared_buffers: "64MB",
  max_wal_size: "256MB",
  min_wal_size: "32MB",
};
/** Far more than a sandbox needs, so that several of them do not fill it. */
const MEMORY_BYTES = 1024 ** 3;
/** The parts of a data folder that a template has. */
const CLUSTER = "postgres";
const PASSWORD = "postgres_password";

/**
 * The program of the reaper; its argument is the folder. `read` returns when the writer of its
 * standard input has ended. SIGQUIT ends a server at once, without a checkpoint. The server removes
 * its file at the end. Its process can stay as a zombie, because its parent has ended.
 */
const REAPER = `
trap '' INT TERM HUP
read -r _
file=$1/postgres/postmaster.pid
if pid=$(head -n 1 "$file" 2>/dev/null) && kill -QUIT "$pid" 2>/dev/null; then
  tries=0
  while [ -e "$file" ]; do
    tries=$((tries + 1))
    if [ "$tries" -gt 250 ]; then kill -KILL "$pid"; break; fi
    sleep 0.02
  done
fi
rm -rf "$1"
`;

/**
 * Makes a data folder with a migrated database. It is gone when this process has ended.
 * @throws {Error} if PostgreSQL cannot be installed or the database cannot be made
 */
export async function makeTemporaryData(options: InstallOptions): Promise<TemporaryData> {
  const path = choosePath();
  // The reaper is first, so that it also removes the folder of a process that ends at once.
  startReaper(path);
  const account = await postgresAccount();
  await Deno.mkdir(path, { mode: 0o700 });
  // The account that runs PostgreSQL for root must be able to enter the folder.
  if ("uid" in account) await Deno.chmod(path, 0o755);
  const home = await postgresHome(path, account);
  if (home !== path) startReaper(home);
  const cache = await postgresCache(account, home);
  const template = await openTemplate(cache, options);
  await Deno.copyFile(join(template, PASSWORD), join(home, PASSWORD));
  copyFolder(join(template, CLUSTER), join(home, CLUSTER), account);
  return { path, remove: () => Deno.remove(path, { recursive: true }) };
}

/** Returns a path that nothing has, in memory if the system has enough of it. */
function choosePath(): string {
  const dir = memoryDir(MEMORY_BYTES) ?? Deno.realPathSync(tmpdir());
  return join(dir, `${PACKAGE.name}-${crypto.randomUUID()}`);
}

/** Windows has no shell for it: there the process removes its folder itself. */
function startReaper(folder: string): void {
  if (Deno.build.os === "windows") return;
  const child = new Deno.Command("/bin/sh", {
    args: ["-c", REAPER, "reaper", folder],
    stdin: "piped",
    // The parent of this process waits until both outputs are closed: then the folder is gone.
    stdout: "inherit",
    stderr: "inherit",
    detached: true,
    cwd: "/",
  }).spawn();
  child.unref();
}

/**
 * Returns the folder of the template for these migrations, and makes it if it is missing. It is
 * renamed into place, so it is complete or absent.
 */
async function openTemplate(cache: string, options: InstallOptions): Promise<string> {
  const template = join(cache, `template-${await fingerprint()}`);
  if (await exists(template)) return template;
  options.onProgress?.("Preparing the database of sandboxes (once)");
  const unfinished = `${template}.${crypto.randomUUID().slice(0, 8)}.new`;
  startReaper(unfinished);
  try {
    await Deno.mkdir(unfinished, { mode: 0o755 });
    const server = await startPostgres({
      ...options,
      data_dir: unfinished,
      durable: true,
      wal_segment_mb: 1,
    });
    try {
      await migrate(server.superuser_url);
      await dropTemplates(server.superuser_url);
    } finally {
      await server.stop();
    }
    await Deno.rename(unfinished, template);
  } catch (error) {
    await Deno.remove(unfinished, { recursive: true }).catch(() => {});
    // Another process can have made it at the same time.
    if (!await exists(template)) throw error;
  }
  return template;
}

/**
 * Drops the databases from which PostgreSQL makes other ones. A sandbox makes none, and they are
 * two thirds of the files that each copy has.
 */
async function dropTemplates(url: string): Promise<void> {
  await using sql = openConnection(url);
  for (const name of ["template0", "template1"]) {
    await sql`alter database ${sql(name)} is_template false`;
    await sql`drop database ${sql(name)}`;
  }
}

/** Changes with each migration and with the version of PostgreSQL. */
async function fingerprint(): Promise<string> {
  const hash = createHash("sha256").update(POSTGRES_VERSION);
  for (const { file } of await listMigrations(MIGRATIONS_DIR)) {
    hash.update(file).update(await Deno.readFile(join(MIGRATIONS_DIR, file)));
  }
  return hash.digest("hex").slice(0, 16);
}

/** Copies a folder, with `account` as the owner of the copy. Synchronous calls are the fastest. */
function copyFolder(from: string, to: string, account: Account): void {
  Deno.mkdirSync(to, { mode: 0o700 });
  for (const { name, isDirectory } of Deno.readDirSync(from)) {
    const [source, target] = [join(from, name), join(to, name)];
    if (isDirectory) {
      copyFolder(source, target, account);
    } else {
      Deno.copyFileSync(source, target);
      if ("uid" in account) Deno.chownSync(target, account.uid, account.gid);
    }
  }
  if ("uid" in account) Deno.chownSync(to, account.uid, account.gid);
}
