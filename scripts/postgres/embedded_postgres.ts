/**
 * A PostgreSQL 17 server of our own: unpacked, made, started on a free loopback port, watched and
 * ended. While it is wanted it comes back: a postmaster that dies is restarted on the same port
 * and recovers what was committed. One server per folder; the lock says so before anything else.
 *
 * Not here: migrations and roles (migrate.ts, start.ts), and how a request fares while the server
 * is away (shared/store).
 */

import { join } from "node:path";
import process from "node:process";
import { takeFileLock } from "../data_dir/file_lock.ts";
import { postgresAccount, postgresHome } from "./postgres_account.ts";
import { endLeftoverServer, openCluster, SUPERUSER } from "./postgres_cluster.ts";
import { installPostgres, type StepOptions } from "./postgres_package.ts";
import { type LaunchFailure, launchPostgres, type PostgresProcess } from "./postgres_process.ts";

/** What a server is started with. */
interface PostgresOptions extends StepOptions {
  /** Folder for programs, databases and password; made if missing, kept by `stop`. */
  data_dir: string;
  /** Whether a commit survives a crash of the machine. Only tests say no. */
  durable: boolean;
  /** Server settings over ours, as `postgres -c name=value` takes them. */
  settings?: Record<string, string> | undefined;
  /** Where the server's own messages go; `<data_dir>/postgres.log` by default. */
  log_file?: string | undefined;
}

/** A login role for a URL. */
export interface LoginRole {
  name: string;
  password: string;
}

/** A running server. */
export interface PostgresServer {
  /** The port on 127.0.0.1; the same through restarts. */
  readonly port: number;
  /** URL of the database `postgres` as superuser. */
  readonly superuser_url: string;
  /** Process id of the postmaster of this moment; changes with a restart. */
  readonly pid: number;
  /** Where the programs and databases are. */
  readonly home: string;
  /** Resolves when the server is gone for good: null after `stop`, else why it cannot return. */
  readonly exited: Promise<Error | null>;
  /** URL of a database, as superuser unless a role is given. */
  urlFor(database: string, role?: LoginRole): string;
  /** Ends the server: sessions are cut, a checkpoint is written. At most 15 s. */
  stop(): Promise<void>;
}

/**
 * The server's page cache: a sixteenth of the memory that there is, within these bounds in MB; for 1 GB
 * and upwards. A quarter, the usual advice, is for machines that do nothing else.
 */
const SHARED_BUFFERS = { share: 16, least: 256, most: 1024 };
const DEFAULT_SETTINGS: Readonly<Record<string, string>> = {
  max_connections: "100",
  max_wal_size: "2GB",
  min_wal_size: "256MB",
  checkpoint_timeout: "15min",
  jit: "off",
  timezone: "UTC",
  log_timezone: "UTC",
  // Nothing that a client sent may reach the log: no statements, no DETAIL with row values.
  log_min_error_statement: "panic",
  log_error_verbosity: "terse",
  log_checkpoints: "off",
};
const UNSAFE_SETTINGS = { fsync: "off", full_page_writes: "off", synchronous_commit: "off" };

/** How often another free port is tried when someone takes ours first. */
const PORT_ATTEMPTS = 5;
/** Processes of a killed server end within this; until then its shared memory is in use. */
const ORPHANS_WAIT_MS = 30_000;
const RETRY_MS = 100;
const RESTART_PAUSE_MS = 1_000;

/**
 * Starts a server and resolves when it takes connections.
 * Errors: the folder is in use by another start, no package for the platform, no account that can
 * run it, or the server's own last words.
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
    const programs = await installPostgres(home, options);
    const cluster = await openCluster(home, programs, { ...options, account });
    await endLeftoverServer(cluster.path);
    const settings = {
      ...DEFAULT_SETTINGS,
      shared_buffers: `${sharedBuffers()}MB`,
      ...(options.durable ? {} : UNSAFE_SETTINGS),
    };
    const log_file = options.log_file ?? join(data_dir, "postgres.log");
    const launch = (port: number) =>
      launchPostgres(programs, cluster, port, { ...settings, ...options.settings }, log_file);
    options.signal?.throwIfAborted();
    const first = await launchOnFreePort(launch);
    const server = supervise(first, launch, cluster.path);
    server.exited.finally(() => lock.release());
    return {
      ...server,
      port: first.port,
      home,
      get pid() {
        return server.current().pid;
      },
      superuser_url: urlOf(first.port, SUPERUSER, { name: SUPERUSER, password: cluster.password }),
      urlFor: (database, role = { name: SUPERUSER, password: cluster.password }) =>
        urlOf(first.port, database, role),
    };
  } catch (error) {
    lock.release();
    throw error;
  }
}

type Launch = (port: number) => Promise<PostgresProcess | LaunchFailure>;

/** The first launch: another port when somebody takes ours, patience with an older run's rest. */
async function launchOnFreePort(launch: Launch): Promise<{ port: number; run: PostgresProcess }> {
  const give_up_at = Date.now() + ORPHANS_WAIT_MS;
  for (let attempt = 1;;) {
    const port = freePort();
    const run = await launch(port);
    if (!("failure" in run)) return { port, run };
    const again = run.failure === "port_taken"
      ? attempt++ < PORT_ATTEMPTS
      : run.failure === "orphans" && Date.now() < give_up_at;
    if (!again) throw new Error(`PostgreSQL did not start. Its last words:\n${run.words}`);
    await pause(RETRY_MS);
  }
}

/** Restarts the server whenever it ends unasked, for as long as its folder exists. */
function supervise(first: { port: number; run: PostgresProcess }, launch: Launch, path: string) {
  let run: PostgresProcess = first.run;
  let is_wanted = true;
  const restart = async (): Promise<PostgresProcess | Error | null> => {
    while (is_wanted) {
      if (!await Deno.stat(join(path, "PG_VERSION")).then(() => true, () => false)) {
        return new Error(`The databases in "${path}" are gone`);
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
  // With a container's limit, where Deno sees one; 0 where it does not.
  const total = Math.min(Deno.systemMemoryInfo().total, process.constrainedMemory() || Infinity);
  return Math.min(most, Math.max(least, Math.floor(total / share / 2 ** 20)));
}

/** A port that nobody uses at this moment. */
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

function pause(delay_ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, delay_ms));
}
