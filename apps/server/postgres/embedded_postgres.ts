/**
 * Runs an embedded PostgreSQL 17 server: installs the programs, creates the databases, starts the
 * server on a free loopback port, and stops it. If the postmaster dies, it is restarted on the same
 * port, and the server recovers every committed transaction. A lock allows one server per folder.
 *
 * The callers apply migrations and create roles. shared/store responds to requests while the server
 * is down.
 */

import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import process from "node:process";
import { takeFileLock } from "../data_dir/file_lock.ts";
import { noteDataFolder, removeAbandonedHomes } from "./abandoned_homes.ts";
import { FALLBACK_PARENT, postgresAccount, postgresHome } from "./postgres_account.ts";
import { postgresCache } from "./postgres_cache.ts";
import { endLeftoverServer, openCluster, socketFolder, SUPERUSER } from "./postgres_cluster.ts";
import { type InstallOptions, installPostgres } from "./postgres_package.ts";
import { type LaunchFailure, launchPostgres, type PostgresProcess } from "./postgres_process.ts";

export interface PostgresOptions extends InstallOptions {
  /** Folder for databases and password. Created if missing; `stop` keeps it. */
  data_dir: string;
  /** Whether a commit survives a crash of the machine. Only tests and tools pass false. */
  durable: boolean;
  /** Size of a segment of the write-ahead log of a new cluster, in MB: 1, 2, 4 … By default 16. */
  wal_segment_mb?: number | undefined;
  /** Server settings that override the defaults, as in `postgres -c name=value`. */
  settings?: Record<string, string> | undefined;
}

/** A role that can log in. */
export interface LoginRole {
  name: string;
  password: string;
}

export interface PostgresServer {
  /** The port on 127.0.0.1, which a restart keeps. */
  readonly port: number;
  /** URL of the database `postgres` with the superuser. */
  readonly superuser_url: string;
  /** Process id of the postmaster. A restart changes it. */
  readonly pid: number;
  /** Folder of the databases. */
  readonly home: string;
  /** Folder of the programs, which `installPostgres` takes. */
  readonly programs_home: string;
  /** Resolves when the server has ended for good: to null after `stop`, otherwise to the reason. */
  readonly exited: Promise<Error | null>;
  /** Returns the URL of a database, with the superuser unless a role is given. */
  urlFor(database: string, role?: LoginRole): string;
  /** The folder of its Unix socket; null: it has none. */
  readonly socket_folder: string | null;
  /**
   * Stops the server: it ends all sessions and writes a checkpoint. If that takes more than 10 s,
   * it stops without a checkpoint; after 15 s it is killed.
   */
  stop(): Promise<void>;
}

/**
 * Setting `shared_buffers`: 1/16 of the memory, within these bounds in MB. The usual 1/4 is for
 * machines that run nothing else. The lower bound is for machines with at least 1 GB of memory.
 */
const SHARED_BUFFERS = { share: 16, least: 256, most: 1024 };
const DEFAULT_SETTINGS: Readonly<Record<string, string>> = {
  timezone: "UTC",
  log_timezone: "UTC",
  // The log must not contain data of clients: no statements, no DETAIL with values of rows.
  log_min_error_statement: "panic",
  log_error_verbosity: "terse",
  log_checkpoints: "off",
};
const UNSAFE_SETTINGS = { fsync: "off", full_page_writes: "off", synchronous_commit: "off" };

/** Attempts with a free port, which another program can take before the server opens it. */
const PORT_ATTEMPTS = 5;
/** Time to wait for the processes of a killed server to end. They keep its shared memory in use. */
const ORPHANS_WAIT_MS = 30_000;
const RETRY_MS = 100;
const RESTART_PAUSE_MS = 1_000;

/**
 * Starts a server and resolves when it accepts connections.
 * @throws {Error} if another process uses the folder, there is no package for the platform, no
 * account can run the server, or the server does not start; the message has its last log lines
 */
export async function startPostgres(options: PostgresOptions): Promise<PostgresServer> {
  await Deno.mkdir(options.data_dir, { recursive: true });
  const data_dir = await Deno.realPath(options.data_dir);
  const lock = takeFileLock(join(data_dir, "postgres.lock"));
  if ("held_by" in lock) {
    throw new Error(`"${data_dir}" is in use by another start (process ${lock.held_by})`);
  }
  try {
    const account = await postgresAccount();
    const home = await postgresHome(data_dir, account);
    const programs_home = await postgresCache(account, home);
    const programs = await installPostgres(programs_home, options);
    const cluster = await openCluster(home, programs, { ...options, account });
    await endLeftoverServer(cluster.path);
    if (home !== data_dir) await noteDataFolder(home, data_dir);
    if ("uid" in account) await tidy(options);
    const settings = {
      ...DEFAULT_SETTINGS,
      shared_buffers: `${sharedBuffers()}MB`,
      ...(options.durable ? {} : UNSAFE_SETTINGS),
    };
    const log_file = join(data_dir, "postgres.log");
    const socket_folder = socketFolder(cluster);
    const all = { ...settings, ...options.settings };
    const launch = (port: number) =>
      launchPostgres(programs, cluster, { port, socket_folder }, all, log_file);
    options.signal?.throwIfAborted();
    const first = await launchOnFreePort(launch);
    const server = supervise(first, launch, cluster.path);
    server.exited.finally(() => lock.release());
    return {
      ...server,
      port: first.port,
      home,
      programs_home,
      get pid() {
        return server.current().pid;
      },
      superuser_url: urlOf(first.port, SUPERUSER, { name: SUPERUSER, password: cluster.password }),
      urlFor: (database, role = { name: SUPERUSER, password: cluster.password }) =>
        urlOf(first.port, database, role),
      socket_folder,
    };
  } catch (error) {
    lock.release();
    throw error;
  }
}

/** Removes the databases of deleted data folders. A failure is no reason not to start. */
async function tidy({ onProgress }: PostgresOptions): Promise<void> {
  const removed = await removeAbandonedHomes(FALLBACK_PARENT).catch(() => 0);
  if (removed === 0) return;
  onProgress?.(`Removed the databases of ${removed} deleted data folders from ${FALLBACK_PARENT}`);
}

type Launch = (port: number) => Promise<PostgresProcess | LaunchFailure>;

/**
 * Launches the server for the first time. Tries another port if the port was taken, and waits for
 * the processes of a killed server.
 */
async function launchOnFreePort(launch: Launch): Promise<{ port: number; run: PostgresProcess }> {
  const give_up_at = Date.now() + ORPHANS_WAIT_MS;
  for (let attempt = 1;;) {
    const port = freePort();
    const run = await launch(port);
    if (!("failure" in run)) return { port, run };
    const again = run.failure === "port_taken"
      ? attempt++ < PORT_ATTEMPTS
      : run.failure === "orphans" && Date.now() < give_up_at;
    if (!again) throw new Error(`PostgreSQL did not start. It printed:\n${run.output}`);
    await pause(RETRY_MS);
  }
}

/** Restarts the server when it ends without `stop`, as long as its folder exists. */
function supervise(first: { port: number; run: PostgresProcess }, launch: Launch, path: string) {
  let run: PostgresProcess = first.run;
  let is_wanted = true;
  const restart = async (): Promise<PostgresProcess | Error | null> => {
    while (is_wanted) {
      if (!await Deno.stat(join(path, "PG_VERSION")).then(() => true, () => false)) {
        return new Error(`The databases in "${path}" have been deleted`);
      }
      await endLeftoverServer(path);
      const next = await launch(first.port);
      if (!("failure" in next)) return next;
      await pause(next.failure === "orphans" ? RETRY_MS : RESTART_PAUSE_MS);
    }
    return null;
  };
  const watch = async (): Promise<Error | null> => {
    for (;;) {
      await run.ended;
      if (!is_wanted) return null;
      const next = await restart();
      if (next === null || next instanceof Error) return next;
      run = next;
      if (!is_wanted) await run.end();
    }
  };
  const exited = watch().catch((error: Error) => error);
  return {
    exited,
    current: () => run,
    stop: async () => {
      is_wanted = false;
      await run.end();
      await exited;
    },
  };
}

function sharedBuffers(): number {
  const { share, least, most } = SHARED_BUFFERS;
  // constrainedMemory() is the limit of the container, or 0 if Deno finds none.
  const total = Math.min(Deno.systemMemoryInfo().total, process.constrainedMemory() || Infinity);
  return Math.min(most, Math.max(least, Math.floor(total / share / 2 ** 20)));
}

function freePort(): number {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr as Deno.NetAddr;
  listener.close();
  return port;
}

function urlOf(port: number, database: string, role: LoginRole): string {
  const [user, password] = [role.name, role.password].map(encodeURIComponent);
  return `postgres://${user}:${password}@127.0.0.1:${port}/${encodeURIComponent(database)}`;
}
