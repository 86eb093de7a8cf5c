/**
 * One run of the PostgreSQL server program, from its launch to its end: waits until it takes
 * connections, says in one word why a launch failed, and keeps what it prints in a log file.
 */

import { join } from "node:path";
import type { PostgresCluster } from "./postgres_cluster.ts";
import type { PostgresPrograms } from "./postgres_package.ts";

/** A run of the server. */
export interface PostgresProcess {
  readonly pid: number;
  /** Resolves when the postmaster has ended, with its last printed lines. */
  readonly ended: Promise<string>;
  /** Ends it: a fast shutdown, then an immediate one, then by force. */
  end(): Promise<void>;
}

/** Why a launch failed: the port is taken, an older run's processes remain, or another reason. */
export type LaunchFailure = {
  failure: "port_taken" | "orphans" | "other";
  words: string;
};

/** The log starts anew at a launch when it has grown beyond this. */
const LOG_BYTES = 16 * 1024 * 1024;
/** Lines kept for error messages. */
const LAST_LINES = 12;
const POLL_MS = 10;
const FAST_WAIT_MS = 10_000;
const IMMEDIATE_WAIT_MS = 5_000;

/** Launches the server on a loopback port and resolves when it takes connections or has ended. */
export async function launchPostgres(
  programs: PostgresPrograms,
  cluster: PostgresCluster,
  port: number,
  settings: Readonly<Record<string, string>>,
  log_file: string,
): Promise<PostgresProcess | LaunchFailure> {
  const all = {
    listen_addresses: "127.0.0.1",
    port: String(port),
    unix_socket_directories: "",
    ...settings,
  };
  const child = new Deno.Command(programs.postgres, {
    args: ["-D", cluster.path, ...Object.entries(all).flatMap(([k, v]) => ["-c", `${k}=${v}`])],
    cwd: cluster.path,
    stdin: "null",
    stdout: "null",
    stderr: "piped",
    // A group of its own: Ctrl-C reaches us alone, and we end it after the requests in flight.
    detached: true,
    ...cluster.account,
  }).spawn();
  const lines: string[] = [];
  const logged = keepLog(child.stderr, log_file, lines);
  let has_ended = false;
  const ended = child.status.then(async () => {
    has_ended = true;
    // Orphaned backends of a killed postmaster hold the pipe open for a moment: do not wait long.
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
  const words = await ended;
  return { failure: classify(words), words };
}

/** The postmaster itself writes its state as line 8 of its pid file. */
async function isReady(pid_file: string, pid: number): Promise<boolean> {
  const lines = (await Deno.readTextFile(pid_file).catch(() => "")).split("\n");
  return Number(lines[0]) === pid && lines[7]?.trim() === "ready";
}

function classify(words: string): LaunchFailure["failure"] {
  if (words.includes("could not bind") || words.includes("could not create any TCP/IP sockets")) {
    return "port_taken";
  }
  return words.includes("pre-existing shared memory block") ? "orphans" : "other";
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
    // It ended between our look and the signal.
  }
}

/**
 * Appends what the server prints to the log and keeps the last lines for messages. Reads on when
 * the log cannot be written: a full pipe would stop the server.
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
