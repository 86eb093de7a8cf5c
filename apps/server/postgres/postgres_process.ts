/**
 * One process of the PostgreSQL server, from its launch to its end. This module waits until the
 * server accepts connections, classifies a failed launch, and writes the output to a log file.
 */

import { join } from "node:path";
import type { PostgresCluster } from "./postgres_cluster.ts";
import type { PostgresPrograms } from "./postgres_package.ts";

/** A running server. */
export interface PostgresProcess {
  readonly pid: number;
  /** Resolves to the last lines of the output when the postmaster has ended. */
  readonly ended: Promise<string>;
  /** Ends the server with a fast shutdown, then with an immediate one, then with SIGKILL. */
  end(): Promise<void>;
}

/** A failed launch. `orphans`: processes of a killed server of this cluster still run. */
export type LaunchFailure = {
  failure: "port_taken" | "orphans" | "other";
  /** The last lines of the output. */
  output: string;
};

/** A launch empties the log if it has at least this size. */
const LOG_BYTES = 16 * 1024 * 1024;
/** Number of lines that error messages show. */
const LAST_LINES = 12;
const POLL_MS = 10;
const FAST_WAIT_MS = 10_000;
const IMMEDIATE_WAIT_MS = 5_000;

/** Launches the server on a loopback port. Resolves when it accepts connections or has ended. */
export async function launchPostgres(
  programs: PostgresPrograms,
  cluster: PostgresCluster,
  { port, socket_folder }: { port: number; socket_folder: string | null },
  settings: Readonly<Record<string, string>>,
  log_file: string,
): Promise<PostgresProcess | LaunchFailure> {
  const all = {
    listen_addresses: "127.0.0.1",
    port: String(port),
    // A list in which quotation marks are doubled.
    unix_socket_directories: socket_folder ? `"${socket_folder.replaceAll('"', '""')}"` : "",
    ...settings,
  };
  const child = new Deno.Command(programs.postgres, {
    args: ["-D", cluster.path, ...Object.entries(all).flatMap(([k, v]) => ["-c", `${k}=${v}`])],
    cwd: cluster.path,
    stdin: "null",
    stdout: "null",
    stderr: "piped",
    // In its own process group the server does not get the signal of Ctrl-C. The start ends it
    // after the requests in flight.
    detached: true,
    ...cluster.account,
  }).spawn();
  const lines: string[] = [];
  const logged = keepLog(child.stderr, log_file, lines);
  let has_ended = false;
  const ended = child.status.then(async () => {
    has_ended = true;
    // Orphaned backends of a killed postmaster keep the pipe open for some time, so the wait for
    // the rest of the output is short.
    await Promise.race([logged, pause(200)]);
    return lines.join("\n");
  });
  const pid_file = join(cluster.path, "postmaster.pid");
  while (!has_ended) {
    if (await isReady(pid_file, child.pid)) {
      return { pid: child.pid, ended, end: () => end(programs, cluster, child) };
    }
    await pause(POLL_MS);
  }
  const output = await ended;
  return { failure: classify(output), output };
}

/** Whether the server accepts connections. The postmaster writes its state to line 8. */
async function isReady(pid_file: string, pid: number): Promise<boolean> {
  const lines = (await Deno.readTextFile(pid_file).catch(() => "")).split("\n");
  return Number(lines[0]) === pid && lines[7]?.trim() === "ready";
}

function classify(output: string): LaunchFailure["failure"] {
  if (output.includes("could not bind") || output.includes("could not create any TCP/IP sockets")) {
    return "port_taken";
  }
  return output.includes("pre-existing shared memory block") ? "orphans" : "other";
}

async function end(
  programs: PostgresPrograms,
  cluster: PostgresCluster,
  child: Deno.ChildProcess,
): Promise<void> {
  const gone = child.status.then(() => true);
  if (Deno.build.os === "windows") {
    await new Deno.Command(programs.pg_ctl, {
      args: ["stop", "-D", cluster.path, "-m", "fast", "-t", String(FAST_WAIT_MS / 1_000)],
    }).output();
  } else {
    sendSignal(child, "SIGINT");
    if (await Promise.race([gone, pause(FAST_WAIT_MS)])) return;
    sendSignal(child, "SIGQUIT");
  }
  if (await Promise.race([gone, pause(IMMEDIATE_WAIT_MS)])) return;
  sendSignal(child, "SIGKILL");
  await gone;
}

function sendSignal(child: Deno.ChildProcess, signal: Deno.Signal): void {
  try {
    child.kill(signal);
  } catch {
    // The process has ended before the signal.
  }
}

/**
 * Appends the output of the server to the log, and keeps the last lines in `lines`. It continues to
 * read if the log cannot be written, because a full pipe would block the server.
 */
async function keepLog(
  stream: ReadableStream<Uint8Array>,
  path: string,
  lines: string[],
): Promise<void> {
  const log = await openLog(path).catch(() => null);
  const decoder = new TextDecoder();
  for await (const chunk of stream) {
    lines.push(...decoder.decode(chunk, { stream: true }).split("\n").filter((l) => l !== ""));
    lines.splice(0, lines.length - LAST_LINES);
    await log?.write(chunk).catch(() => {});
  }
  log?.close();
}

async function openLog(path: string): Promise<Deno.FsFile> {
  const size = await Deno.stat(path).then((s) => s.size, () => 0);
  if (size >= LOG_BYTES) await Deno.truncate(path);
  return await Deno.open(path, { create: true, append: true, mode: 0o600 });
}

function pause(delay_ms: number): Promise<false> {
  return new Promise((resolve) => setTimeout(() => resolve(false), delay_ms));
}
